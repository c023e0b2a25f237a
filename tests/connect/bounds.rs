//! What may not be asked for.

use crate::world::{invalid, ms, note, says};
use sprag::{Client, MemoryStore, store::Durability};
use std::time::Duration;

#[tokio::test]
async fn what_is_out_of_bounds_names_field_value_and_bound() {
    // Refused before anybody connects: nobody listens there.
    for client in
        [Client::connect("redis://127.0.0.1:1").expect("a URL"), Client::new(MemoryStore::new())]
    {
        let plain = || client.enqueue(note(1));
        for (enqueue, words) in [
            (plain().replicas(0, ms(100)), ["replicas", "0", "1 to 100"]),
            (plain().replicas(0, Duration::ZERO), ["replicas", "0", "1 to 100"]),
            (plain().fsync(ms(1)).replicas(0, ms(1)), ["replicas", "0", "1 to 100"]),
            (plain().replicas(101, ms(100)), ["replicas", "101", "1 to 100"]),
            (plain().replicas(1, Duration::ZERO), ["durability timeout", "0", "1 ms"]),
            (
                plain().fsync(Duration::from_micros(10)),
                ["durability timeout", "0.010000ms", "1 ms"],
            ),
            (plain().fsync(ms(60_001)), ["durability timeout", "60001ms", "1 min"]),
        ] {
            says(&invalid(enqueue.await), &words);
        }
        let nothing = client.durable(Durability::default());
        says(&invalid(nothing.map(drop)), &["durability", "none", "at least one replica"]);
    }
}
