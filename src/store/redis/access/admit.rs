//! Before a connection's first call: whether the user may do what the role does, and whether the
//! keys are laid out as this version knows. A script that is refused a command half-way has written
//! the rest: so all of them are asked for before.

use super::{Role, commands::Command};
use crate::{
    model::{QueueName, StoreError},
    store::redis::{Inner, call::Via, fault::Fault, keys, schema, scripts::Verb},
};
use futures_util::FutureExt;
use redis::from_redis_value;
use std::{
    collections::BTreeSet,
    pin::Pin,
    sync::atomic::{AtomicU64, Ordering},
};

/// Bits for what was found out; above them the connection's generation.
const BITS: u32 = 4;
/// The layout is known.
const LAYOUT: u64 = 1 << 3;

/// What was found out over the newest connection: roles whose commands are allowed, the layout.
#[derive(Debug, Default)]
pub(in crate::store::redis) struct Admitted {
    found: AtomicU64,
    /// Connections that were given up. One that is lost counts before the next one is made.
    lost: AtomicU64,
}

impl Admitted {
    /// What was found out over the last connection says nothing of the next one.
    pub(in crate::store::redis) fn forget(&self) {
        self.lost.fetch_add(1, Ordering::AcqRel);
    }

    fn at(&self, generation: u64) -> u64 {
        let known = self.found.load(Ordering::Acquire);
        if known >> BITS == generation { known & ((1 << BITS) - 1) } else { 0 }
    }

    /// Of an older connection than what is known already: nothing.
    fn add(&self, generation: u64, bits: u64) {
        let merged = |known: u64| match known >> BITS {
            newer if newer > generation => None,
            same if same == generation => Some(known | bits),
            _ => Some(generation << BITS | bits),
        };
        // An error says that there was nothing to change.
        let _ = self.found.fetch_update(Ordering::AcqRel, Ordering::Acquire, merged);
    }
}

fn bits(roles: &[Role]) -> u64 {
    roles.iter().fold(0, |bits, role| bits | 1 << *role as u64)
}

impl Inner {
    /// Lets a call through if the user may do what one of its roles does. Asks once per connection
    /// and role; calls that come together may ask together.
    pub(in crate::store::redis) async fn admitted(
        &self,
        verb: Verb,
        queue: &QueueName,
    ) -> Result<(), Fault> {
        let roles = Role::of(verb);
        let lost = self.admitted.lost.load(Ordering::Acquire);
        let known = self.admitted.at(self.link.generation() + lost);
        if known & LAYOUT != 0 && known & bits(roles) != 0 || roles.is_empty() {
            return Ok(());
        }
        // Apart, so that every other call's future stays small.
        let asking: Pin<Box<dyn Future<Output = _> + Send + '_>> =
            Box::pin(self.ask_first(roles, queue, known));
        let found = asking.await?;
        // The connection may have been made by these questions; one that was lost meanwhile is asked
        // about again.
        if self.admitted.lost.load(Ordering::Acquire) == lost {
            self.admitted.add(self.link.generation() + lost, found);
        }
        Ok(())
    }

    /// What is known, and what was not yet.
    async fn ask_first(&self, roles: &[Role], queue: &QueueName, known: u64) -> Result<u64, Fault> {
        let mut found = known;
        if known & bits(roles) == 0 {
            found |= bits(&self.allowed(roles, queue).boxed().await?);
        }
        if known & LAYOUT == 0 {
            self.layout().boxed().await?;
            found |= LAYOUT;
        }
        Ok(found)
    }

    /// Those of the roles that the user may do all of; an error if there is none.
    async fn allowed(&self, roles: &[Role], queue: &QueueName) -> Result<Vec<Role>, Fault> {
        let refused = self.refused(roles, queue).await;
        let refused = refused.map_err(|fault| self.say_who(roles, fault))?.unwrap_or_default();
        let lack = |role: &&Role| role.missing(&refused).len();
        let allowed: Vec<_> = roles.iter().filter(|role| lack(role) == 0).copied().collect();
        let nearest = roles.iter().min_by_key(lack);
        match nearest.filter(|_| allowed.is_empty()) {
            None => Ok(allowed),
            Some(role) => {
                let missing = role.missing(&refused).join(", ");
                let advice = what_to_do(role);
                let user = &self.user;
                Err(backend(format!(
                    "user {user} may not run {missing}, as {} must; {advice}",
                    role.with_article()
                )))
            }
        }
    }

    /// The commands that these roles need and the user may not run; none: the server does not tell.
    pub(in crate::store::redis) async fn refused(
        &self,
        roles: &[Role],
        queue: &QueueName,
    ) -> Result<Option<BTreeSet<&'static Command>>, Fault> {
        let asked: BTreeSet<_> = roles.iter().flat_map(|role| role.commands()).collect();
        let asked: Vec<_> = asked.into_iter().filter(|command| command.needed).collect();
        let script = self.scripts.get(Verb::Access);
        let cmd = self.command(script, queue, false, &|cmd| {
            for command in &asked {
                cmd.arg(command.within(&self.namespace));
            }
        });
        let answer = self.send(Via::Shared, script, &cmd).await?.answer;
        let places: Option<Vec<usize>> = from_redis_value(answer)
            .map_err(|error| backend(format!("answer of a script: {error}")))?;
        let of = |place: usize| asked.get(place.checked_sub(1)?).copied();
        Ok(places.map(|places| places.into_iter().filter_map(of).collect()))
    }

    /// The server's own refusal does not say for whom and what for.
    fn say_who(&self, roles: &[Role], mut fault: Fault) -> Fault {
        let forbidden = fault.forbidden;
        if let (true, StoreError::Backend(why), [role, ..]) = (forbidden, &mut fault.error, roles) {
            *why = format!(
                "{why} (user {}, {}); {}",
                self.user,
                role.with_article(),
                what_to_do(role)
            );
        }
        fault
    }

    /// Refuses what a newer version has laid out.
    async fn layout(&self) -> Result<(), Fault> {
        let key = keys::schema(&self.namespace);
        let answer = match self.send_plain(redis::cmd("GET").arg(&key)).await {
            Ok(answer) => answer,
            Err(mut fault) => {
                if let StoreError::Backend(why) = &mut fault.error {
                    *why = format!("{key} cannot be read: {why}");
                }
                return Err(fault);
            }
        };
        schema::judge(&key, answer).map_err(refusal)
    }
}

fn what_to_do(role: &Role) -> String {
    format!("`sprag acl {role}` prints the rules for it")
}

fn backend(why: String) -> Fault {
    refusal(StoreError::Backend(why))
}

fn refusal(error: StoreError) -> Fault {
    Fault::refused(error)
}
