//! A transactional outbox: a row of business and a row in `outbox` are written in one transaction,
//! and a relay enqueues what the outbox holds. So a job is enqueued if, and only if, its
//! transaction was committed, though the database and Redis know nothing of each other.
//!
//! ```sh
//! cargo run --example outbox    # on SPRAG_REDIS_URL or REDIS_URL, else on this machine; memory:// works too
//! ```
//!
//! The relay dies once at the worst moment, after it enqueued and before it deleted the rows; the
//! jobs even run before it is back. It then enqueues every row again, under the same ids, and the
//! queue knows them. The database is an SQLite in memory, to try it; yours is where your data is.

#![allow(clippy::print_stdout, reason = "it tells what happens")]

use sprag::{
    Client, Codec, Envelope, Job, JobId, Kind, QueueName, StoreError, Worker, worker::Data,
};
use sqlx::{SqlitePool, sqlite::SqlitePoolOptions};
use std::{
    collections::BTreeMap,
    error::Error,
    sync::{Arc, Mutex},
    time::Duration,
};

/// For longer than a relay may be away: an id is known so long after its job is done and gone.
const REMEMBER: Duration = Duration::from_secs(7 * 24 * 3600);

#[derive(serde::Serialize, serde::Deserialize)]
struct SendWelcome {
    email: String,
}

impl Job for SendWelcome {
    const KIND: &'static str = "email:welcome";
    const QUEUE: &'static str = "outbox-example";
    // Readable in the table.
    const CODEC: Codec = Codec::Json;
}

/// `AUTOINCREMENT`: no id is ever used again, not even that of a row that is gone. What is
/// enqueued as `outbox-7` is that row for ever.
const TABLES: &str = "
    CREATE TABLE users (email TEXT PRIMARY KEY);
    CREATE TABLE outbox (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        queue TEXT NOT NULL, kind TEXT NOT NULL, payload BLOB NOT NULL
    );";

type Row = (i64, String, String, Vec<u8>);
type Result<T, E = Box<dyn Error + Send + Sync>> = std::result::Result<T, E>;

/// What a request does. It does not speak to Redis.
async fn sign_up(database: &SqlitePool, email: &str) -> Result<()> {
    let mut transaction = database.begin().await?;
    sqlx::query("INSERT INTO users VALUES (?)").bind(email).execute(&mut *transaction).await?;
    let job = SendWelcome { email: email.to_owned() };
    sqlx::query("INSERT INTO outbox (queue, kind, payload) VALUES (?, ?, ?)")
        .bind(SendWelcome::QUEUE)
        .bind(SendWelcome::KIND)
        .bind(serde_json::to_vec(&job)?)
        .execute(&mut *transaction)
        .await?;
    Ok(transaction.commit().await?)
}

/// Where the relay ends, in this example.
#[derive(PartialEq)]
enum Dies {
    Never,
    BeforeItDeletes,
}

/// What one pass of the relay did.
#[derive(Debug, Default)]
struct Relayed {
    enqueued: u64,
    existing: u64,
}

/// One pass; a relay does this for ever, with a pause when the outbox is empty or Redis is away. Two
/// of them at a time do no harm.
async fn relay(client: &Client, database: &SqlitePool, dies: Dies) -> Result<Relayed> {
    let mut relayed = Relayed::default();
    loop {
        let rows: Vec<Row> =
            sqlx::query_as("SELECT id, queue, kind, payload FROM outbox ORDER BY id LIMIT 500")
                .fetch_all(database)
                .await?;
        if rows.is_empty() {
            return Ok(relayed);
        }
        let jobs = rows.iter().map(envelope).collect::<Result<Vec<_>, _>>()?;
        let outcomes = client.enqueue_envelopes(&jobs).await?;
        if dies == Dies::BeforeItDeletes {
            return Err("the relay was killed".into());
        }
        // Just those that were enqueued. In a database with several writers a row with a smaller
        // id may be committed later: never delete `WHERE id <= …`.
        let mut transaction = database.begin().await?;
        let mut refused = None;
        for ((id, ..), outcome) in rows.iter().zip(outcomes) {
            match outcome {
                Ok(job) if job.existing => relayed.existing += 1,
                Ok(_) => relayed.enqueued += 1,
                // Full, say: the row stays, for the next pass.
                Err(error) => {
                    refused.get_or_insert(error);
                    continue;
                }
            }
            let delete = sqlx::query("DELETE FROM outbox WHERE id = ?").bind(id);
            delete.execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        if let Some(error) = refused {
            return Err(error.into());
        }
    }
}

/// The row's id is the job's id. Several outboxes that fill one queue need a prefix each.
fn envelope((id, queue, kind, payload): &Row) -> Result<Envelope, StoreError> {
    Envelope::builder(QueueName::new(queue)?, Kind::new(kind)?)
        .id(JobId::new(format!("outbox-{id}"))?)
        .payload(payload.clone(), Codec::Json)
        .remember(REMEMBER)
        .build()
}

/// How often each job ran: what the end of this example looks at.
#[derive(Default)]
struct Runs(Mutex<BTreeMap<String, u32>>);

async fn welcome(_: SendWelcome, id: JobId, runs: Data<Arc<Runs>>) -> Result<()> {
    *runs.0.lock().map_err(|_| "poisoned")?.entry(id.to_string()).or_default() += 1;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let client = Client::from_env()?;
    // This database begins anew at each start, and its ids at 1: so does the queue.
    match client.inspector().delete_queue(SendWelcome::QUEUE, true).await {
        Ok(()) | Err(StoreError::NotFound(_)) => {}
        Err(error) => return Err(error.into()),
    }
    let database = SqlitePoolOptions::new().max_connections(1).connect("sqlite::memory:").await?;
    sqlx::raw_sql(TABLES).execute(&database).await?;

    for user in 1..=20 {
        sign_up(&database, &format!("user-{user}@example.org")).await?;
    }
    let again = sign_up(&database, "user-7@example.org").await;
    println!("a second user-7 is refused, and so is his mail: {}", again.is_err());

    let runs = Arc::new(Runs::default());
    let mut worker = Worker::builder(&client).data(runs.clone()).handler(welcome).build()?;
    let killed = relay(&client, &database, Dies::BeforeItDeletes).await;
    println!("first relay: {killed:?}");
    println!("{} jobs ran before it was back", worker.run_until_empty().await?.completed);
    let relayed = relay(&client, &database, Dies::Never).await?;
    println!("second relay: {relayed:?}");
    let again = worker.run_until_empty().await?.completed;

    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM outbox").fetch_one(&database).await?;
    let runs = runs.0.lock().map_err(|_| "poisoned")?;
    if (left, again, runs.len()) != (0, 0, 20) || runs.values().any(|times| *times != 1) {
        return Err(format!("{left} rows left, {again} run again, runs: {runs:?}").into());
    }
    println!("20 rows, 20 jobs, each of them ran once");
    Ok(())
}
