//! `cargo bench --all-features --bench bench -- [SECTION…] [--quick] [--json FILE]`: what sprag does and costs, each
//! figure beside the least that there can be, measured in the same run on the same server.
//!
//! Each section starts servers of its own. The floor is the same variadic commands on the same keys,
//! pipelined, without Lua: no checks, no answers kept, nothing promised; of latency it is LPUSH and
//! BLPOP. Sections end with a check that every job ran and was settled, and panic if not. Machines
//! are noisy: read the ratios, which are taken run by run.
//!
//! `jobs` fills queues and looks whether they are settled, `child` is a worker in a process of its own,
//! `report` prints. Each other module is a section; its first lines say what it measures.

#![allow(clippy::print_stdout, reason = "its table is what a bench is for")]

mod child;
mod client;
mod connections;
mod cost;
mod deep;
mod drain;
mod due;
mod idle;
mod jobs;
mod latency;
mod loss;
mod memory;
mod options;
mod queues;
mod recovery;
mod report;
mod server;
mod soak;
mod spread;
mod throughput;
mod waiting;
mod workers;

use clap::{Parser, ValueEnum};
use report::Report;
use server::{Aof, info};
use std::{path::PathBuf, process::ExitCode};

/// What sprag does and costs, beside the least that there can be
#[derive(Parser)]
#[command(name = "bench")]
struct Args {
    /// What to measure [default: all up to `spread`]
    sections: Vec<Section>,
    /// Runs of each measure [default: 5; with --quick 2]
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    /// A twentieth of the jobs and some seconds: to see that it works, not to be quoted
    #[arg(long)]
    quick: bool,
    /// The table also as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// A setting of every server, such as "hash-max-listpack-entries 0"; may be given again
    #[arg(long, value_name = "NAME VALUE")]
    redis: Vec<String>,
    /// Jobs that wait, of the section `waiting`; --quick does not change it
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    waiting: usize,
    /// Jobs of the section `soak`; --quick does not change it
    #[arg(long, value_name = "N", default_value_t = 2_000_000)]
    soak: usize,
    /// What cargo says
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Section {
    Throughput,
    Client,
    Latency,
    Cost,
    Memory,
    Idle,
    Recovery,
    Options,
    Connections,
    Loss,
    Spread,
    /// Queues of 10,000,000 waiting jobs
    Waiting,
    /// 100,000 jobs that are due within one second
    Due,
    /// One worker on 1,000 queues
    Queues,
    /// 200 worker processes
    Workers,
    /// The four before it
    Scale,
    Soak,
}

impl Section {
    const USUAL: [Self; 11] = [
        Self::Throughput,
        Self::Client,
        Self::Latency,
        Self::Cost,
        Self::Memory,
        Self::Idle,
        Self::Recovery,
        Self::Options,
        Self::Connections,
        Self::Loss,
        Self::Spread,
    ];
    const SCALE: [Self; 4] = [Self::Due, Self::Queues, Self::Workers, Self::Waiting];

    fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Client => "client",
            Self::Latency => "latency",
            Self::Cost => "cost",
            Self::Memory => "memory",
            Self::Idle => "idle",
            Self::Recovery => "recovery",
            Self::Options => "options",
            Self::Connections => "connections",
            Self::Loss => "loss",
            Self::Spread => "spread",
            Self::Waiting => "waiting",
            Self::Due => "due",
            Self::Queues => "queues",
            Self::Workers => "workers",
            Self::Scale => "scale",
            Self::Soak => "soak",
        }
    }

    async fn run(self, plan: &Plan, report: &mut Report) {
        match self {
            Self::Throughput => throughput::run(plan, report).await,
            Self::Client => client::run(plan, report).await,
            Self::Latency => latency::run(plan, report).await,
            Self::Cost => cost::run(plan, report).await,
            Self::Memory => memory::run(plan, report).await,
            Self::Idle => idle::run(plan, report).await,
            Self::Recovery => recovery::run(plan, report).await,
            Self::Options => {
                options::run(plan, report).await;
                deep::run(plan, report).await;
            }
            Self::Connections => connections::run(plan, report).await,
            Self::Loss => loss::run(plan, report).await,
            Self::Spread => spread::run(plan, report).await,
            Self::Waiting => waiting::run(plan, report).await,
            Self::Due => due::run(plan, report).await,
            Self::Queues => queues::run(plan, report).await,
            Self::Workers => workers::run(plan, report).await,
            Self::Scale => {}
            Self::Soak => soak::run(plan, report).await,
        }
    }

    /// Of what a server's CPU is asked, the client has one thread: what it sends together then does
    /// not depend on the machine.
    fn runtime(self) -> tokio::runtime::Runtime {
        let mut builder = match self {
            Self::Cost | Self::Options | Self::Memory | Self::Waiting => {
                tokio::runtime::Builder::new_current_thread()
            }
            _ => tokio::runtime::Builder::new_multi_thread(),
        };
        builder.enable_all().build().expect("a runtime")
    }
}

/// How much of everything.
struct Plan {
    runs: usize,
    quick: bool,
    waiting: usize,
    soak: u64,
}

impl Plan {
    /// So many, or with `--quick` a twentieth.
    fn jobs(&self, full: usize) -> usize {
        if self.quick { full / 20 } else { full }
    }

    /// One of the two.
    fn pick<T>(&self, full: T, quick: T) -> T {
        if self.quick { quick } else { full }
    }
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(child::SUBCOMMAND) {
        return child::main();
    }
    let args = Args::parse();
    let runs = args.runs.unwrap_or(if args.quick { 2 } else { 5 }).max(1);
    let (quick, waiting) = (args.quick, args.waiting);
    let plan = Plan { runs, quick, waiting, soak: args.soak as u64 };
    let settings = args.redis.iter().flat_map(|setting| {
        let (name, value) = setting.split_once(' ').unwrap_or((setting, ""));
        [format!("--{name}"), value.to_owned()]
    });
    server::SETTINGS.get_or_init(|| settings.collect());
    let mut report = Report::new(server_name(), runs, quick);
    for section in sections(&args.sections) {
        report.begin(section.name());
        section.runtime().block_on(section.run(&plan, &mut report));
        if let Some(file) = &args.json {
            // After each: a long bench that breaks off keeps what it has.
            report.write_json(file).expect("the JSON file can be written");
        }
    }
    report.missed().iter().for_each(|bar| println!("MISSED: {bar}"));
    if report.missed().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn sections(named: &[Section]) -> Vec<Section> {
    let named = if named.is_empty() { &Section::USUAL } else { named };
    let all = named.iter().flat_map(|section| match section {
        Section::Scale => Section::SCALE.to_vec(),
        section => vec![*section],
    });
    all.collect()
}

/// `Redis 7.0.15`.
fn server_name() -> String {
    Section::Cost.runtime().block_on(async {
        let server = Aof::Off.start().await;
        let info = info(&mut server.connection().await, "server").await;
        match info.get::<String>("valkey_version") {
            Some(version) => format!("Valkey {version}"),
            None => format!("Redis {}", info.get::<String>("redis_version").expect("a version")),
        }
    })
}
