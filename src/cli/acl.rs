//! `sprag acl`.

use crate::{args::Global, connect, fail::Failure, out};
use serde::Serialize;
use sprag::{StoreError, store::Role};
use std::collections::BTreeSet;

/// What a user has had before goes, but not passwords.
const ANEW: [&str; 3] = ["resetkeys", "resetchannels", "-@all"];

/// Print the ACL rules of Redis for a user who is a producer, a worker or an operator.
///
/// For the namespace that is set; nothing is sent to a server. Rules of several roles are put
/// together: a worker whose handlers enqueue jobs is a worker and a producer. The line takes what
/// else the user may do and leaves his passwords: sprag acl worker | redis-cli
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What the user is there for: producer, worker, operator
    #[arg(required = true, value_name = "ROLE", value_parser = role())]
    roles: Vec<Role>,
    /// The user's name. Else sprag- and the roles
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    user: &'a str,
    namespace: &'a str,
    roles: Vec<&'a str>,
    rules: &'a [String],
}

fn role() -> impl clap::builder::TypedValueParser<Value = Role> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    let names = PossibleValuesParser::new(Role::ALL.map(Role::as_str));
    names.try_map(|name| {
        let found = Role::ALL.into_iter().find(|role| role.as_str() == name);
        found.ok_or("no role")
    })
}

pub(crate) fn acl(global: &Global, args: &Args) -> Result<(), Failure> {
    let namespace = connect::namespace(global)?;
    let roles: BTreeSet<_> = args.roles.iter().copied().collect();
    let names: Vec<_> = roles.iter().map(|role| role.as_str()).collect();
    let user = args.user.clone().unwrap_or_else(|| format!("sprag-{}", names.join("-")));
    if user.is_empty() || user.contains(|c: char| c.is_whitespace() || c.is_control()) {
        let why = format!("--user: {user:?}; must be a name without spaces");
        return Err(StoreError::Invalid(why).into());
    }
    let mut rules: Vec<String> = ANEW.map(str::to_owned).into();
    for rule in roles.iter().flat_map(|role| role.rules(&namespace)) {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    if global.json {
        let (namespace, rules) = (namespace.as_str(), &*rules);
        return out::object(&Answer { user: &user, namespace, roles: names, rules });
    }
    out::line(&format!("ACL SETUSER {user} {}", rules.join(" ")))
}
