//! `sprag doctor`.

use crate::{args::Global, confirm::confirm, connect, fail::Failure, out};
use indicatif::{ProgressBar, ProgressStyle};
use sprag::{
    QueueName,
    store::{Doctor, Finding, Severity},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    process::ExitCode,
};

/// Look for what is wrong with the server and, per queue, with the data. Queues may be at work.
///
/// Exit code 1 if something must be looked after, or is wrong with a queue's data; 0 if there are at
/// most notes and advice on the server.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// All, if none is named
    queues: Vec<QueueName>,
    /// Mend what is safe, and say what was done. Asks if that is more than one thing
    #[arg(long)]
    repair: bool,
}

/// So many findings of one kind in a queue are shown to people.
const SHOWN: usize = 20;
/// One repair may bring something else to light; so often it is looked again.
const LOOKS: usize = 5;

/// What a look found.
#[derive(Default)]
struct Look {
    findings: Vec<Finding>,
    queues: Vec<(QueueName, u64)>,
}

pub(crate) async fn doctor(global: &Global, args: Args) -> Result<ExitCode, Failure> {
    let mut doctor = connect::looking(global)?.doctor();
    let mut found = look(global, &mut doctor, &args.queues, false).await?;
    let server = doctor.server(&found.queues).await?;
    let mendable = found.findings.iter().filter(|finding| finding.repairable).count();
    if args.repair && mendable > 0 {
        if mendable > 1 {
            confirm(global, &format!("mend {mendable} findings"))?;
        }
        let before = std::mem::take(&mut found.findings);
        found = mend(global, &mut doctor, &args.queues).await?;
        let along = mended_along(before, &found.findings);
        found.findings.splice(0..0, along);
    }
    found.findings.splice(0..0, server);
    tell(global, &found)
}

async fn look(
    global: &Global,
    doctor: &mut Doctor,
    named: &[QueueName],
    mend: bool,
) -> Result<Look, Failure> {
    let (queues, findings) = doctor.queues(named, mend).await?;
    let mut look = Look { findings, queues: Vec::new() };
    let bar = bar(global, queues.len() as u64);
    for queue in queues {
        bar.set_message(queue.to_string());
        let examined = doctor.examine(&queue, mend).await?;
        look.findings.extend(examined.findings);
        look.queues.push((queue, examined.jobs));
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(look)
}

/// indicatif draws on stderr, and only on a terminal.
fn bar(global: &Global, queues: u64) -> ProgressBar {
    if global.quiet || global.json {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{spinner} {pos} of {len} queues done: {msg}");
    ProgressBar::new(queues).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Mends until nothing more is mended.
async fn mend(global: &Global, doctor: &mut Doctor, named: &[QueueName]) -> Result<Look, Failure> {
    let mut mended = Vec::new();
    let mut last = Look::default();
    for _ in 0..LOOKS {
        last = look(global, doctor, named, true).await?;
        let (done, left): (Vec<_>, Vec<_>) =
            std::mem::take(&mut last.findings).into_iter().partition(|one| one.repaired);
        last.findings = left;
        if done.is_empty() {
            break;
        }
        mended.extend(done);
    }
    last.findings.splice(0..0, mended);
    Ok(last)
}

/// What another repair has mended along with its own: counters, a place, a key.
fn mended_along(before: Vec<Finding>, after: &[Finding]) -> Vec<Finding> {
    let name = |one: &Finding| (one.check, one.queue.clone(), one.id.clone());
    let told: BTreeSet<_> = after.iter().map(name).collect();
    let along = before.into_iter().filter(|one| one.repairable && !told.contains(&name(one)));
    along.map(|one| Finding { repaired: true, ..one }).collect()
}

fn tell(global: &Global, found: &Look) -> Result<ExitCode, Failure> {
    let Look { findings, queues } = found;
    let is_bad = |finding: &&Finding| match finding.severity {
        _ if finding.repaired => false,
        Severity::Fail => true,
        Severity::Warn => finding.queue.is_some(),
        Severity::Note => false,
    };
    let bad = findings.iter().filter(is_bad).count();
    if global.json {
        findings.iter().try_for_each(out::object)?;
    } else {
        tables(findings)?;
        let jobs: u64 = queues.iter().map(|(_, jobs)| jobs).sum();
        let mended = findings.iter().filter(|finding| finding.repaired).count();
        let looked = format!("{} queues, {jobs} jobs looked at", queues.len());
        let done = if mended > 0 { format!("{mended} mended, ") } else { String::new() };
        let untold = findings.iter().any(|finding| finding.check == "info_refused");
        out::talk(
            global,
            &match bad {
                0 if untold => {
                    format!("{done}nothing wrong found where it may look: {looked}")
                }
                0 => format!("{done}all is well: {looked}"),
                bad => format!("{done}{bad} to be looked after: {looked}"),
            },
        );
    }
    Ok(if bad == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn severity(finding: &Finding) -> &'static str {
    match finding.severity {
        _ if finding.repaired => "mended",
        Severity::Fail => "FAIL",
        Severity::Warn => "warn",
        Severity::Note => "note",
    }
}

/// What was found, then of each kind what it means and what to do.
fn tables(findings: &[Finding]) -> Result<(), Failure> {
    if findings.is_empty() {
        return Ok(());
    }
    let mut shown: BTreeMap<_, usize> = BTreeMap::new();
    let (mut rows, mut left) = (Vec::new(), 0);
    for finding in findings {
        let count = shown.entry((finding.check, &finding.queue, finding.repaired)).or_default();
        *count += 1;
        if *count > SHOWN {
            left += 1;
            continue;
        }
        let queue = finding.queue.clone().unwrap_or_else(|| "-".to_owned());
        let message = match (&finding.queue, &finding.id) {
            // One of several servers.
            (None, Some(server)) if !finding.message.contains(server) => {
                format!("{server}: {}", finding.message)
            }
            _ => finding.message.clone(),
        };
        rows.push([severity(finding).to_owned(), finding.check.to_owned(), queue, message]);
    }
    out::table(["", "check", "queue", "found"], rows)?;
    if left > 0 {
        out::line(&format!(" … and {left} more of the same kinds: --json shows all"))?;
    }
    out::line("")?;
    let told: BTreeSet<_> =
        findings.iter().map(|finding| (finding.check, finding.means, finding.r#do)).collect();
    let rows = told.into_iter().map(|row| [row.0.to_owned(), row.1.to_owned(), row.2.to_owned()]);
    out::table(["check", "means", "do"], rows.collect())
}
