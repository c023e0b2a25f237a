//! What users hand in comes back as it was, whatever bytes it is made of.

use crate::trial::*;
use sprag::{Codec, Envelope, JobId, Partition, Unique};

cases! {
    a_payload_of_all_bytes_comes_back,
    an_empty_payload_comes_back,
    every_codec_comes_back,
    an_id_of_all_printable_characters_works_in_every_verb,
    a_unique_key_of_all_bytes_comes_back_and_holds,
    a_key_by_payload_comes_back_as_the_fingerprint,
    headers_of_all_characters_come_back,
    a_partition_comes_back,
    an_error_of_all_characters_comes_back,
    a_result_of_all_bytes_comes_back,
    a_payload_that_looks_like_a_record_is_only_a_payload,
    a_payload_survives_every_move,
}

fn all_bytes() -> Vec<u8> {
    (0..=255).collect()
}

fn all_characters() -> String {
    (0..=0x17f_u32).chain([0xffff, 0x1f600, 0x10ffff]).filter_map(char::from_u32).collect()
}

/// Claim and show give back what was enqueued.
async fn assert_comes_back(t: &Trial, job: Envelope) {
    let id = only(t.offer_all(std::slice::from_ref(&job)).await).expect("admitted").id;
    let expected = Ok((job, t.now().await));
    assert_eq!(t.show(&id).await.envelope, expected);
    let claimed = t.claim(1).await.remove(0);
    assert_eq!((claimed.id, Ok((claimed.envelope, claimed.enqueued_at))), (id, expected));
}

async fn a_payload_of_all_bytes_comes_back(t: Trial) {
    assert_comes_back(&t, build(t.job().payload(all_bytes(), Codec::Raw))).await;
}

async fn an_empty_payload_comes_back(t: Trial) {
    assert_comes_back(&t, build(t.job().payload("", Codec::MsgPack))).await;
}

async fn every_codec_comes_back(t: Trial) {
    for codec in [Codec::MsgPack, Codec::Json, Codec::Raw] {
        assert_comes_back(&t, build(t.job().payload("{}", codec))).await;
    }
}

fn printable() -> JobId {
    id(&(0x21..=0x7e_u8).map(char::from).collect::<String>())
}

async fn an_id_of_all_printable_characters_works_in_every_verb(t: Trial) {
    for verb in Fenced::all() {
        let t = t.other_queue().await;
        t.enqueue(t.job().id(printable())).await;
        let held = t.claim_one().await;
        assert_eq!(held.id, printable());
        assert_eq!(verb.apply(&t, &held).await, Ok(()), "{verb:?}");
        let other = t.job().id(printable()).payload("other", Codec::Raw);
        match verb {
            Fenced::Complete => assert!(t.offer(other).await.is_ok()),
            _ => assert_eq!(t.offer(other).await, Err(conflict(&printable())), "{verb:?}"),
        }
    }
    let t = t.other_queue().await;
    t.job_in(sprag::State::Cancelled, t.job().id(printable())).await;
}

async fn a_unique_key_of_all_bytes_comes_back_and_holds(t: Trial) {
    let job = build(t.named("a").unique(Unique::key(all_bytes())));
    assert_comes_back(&t, job).await;
    assert_eq!(t.offer(t.job().unique(Unique::key(all_bytes()))).await, Err(duplicate(&id("a"))));
    let mut other = all_bytes();
    other[255] = 0;
    t.enqueue(t.job().unique(Unique::key(other))).await;
}

async fn a_key_by_payload_comes_back_as_the_fingerprint(t: Trial) {
    for any_kind in [false, true] {
        let scoped = |key: Unique| if any_kind { key.any_kind() } else { key };
        let job = build(t.job().unique(scoped(Unique::by_payload())));
        t.offer_all(std::slice::from_ref(&job)).await;
        let stored = t.show(job.id()).await.envelope.expect("decodes").0;
        let key = Unique::key(job.fingerprint().as_str());
        assert_eq!(stored.unique(), Some(&scoped(key)));
    }
}

async fn headers_of_all_characters_come_back(t: Trial) {
    let all = all_characters();
    let job = t.job().header(all.clone(), all).header("traceparent", "00-ab-cd-01").header("e", "");
    assert_comes_back(&t, build(job)).await;
}

async fn a_partition_comes_back(t: Trial) {
    let text: String = all_characters().chars().filter(|c| !c.is_control()).take(100).collect();
    let partition = Partition::new(text).expect("partition");
    assert_comes_back(&t, build(t.job().partition(partition))).await;
}

async fn an_error_of_all_characters_comes_back(t: Trial) {
    t.enqueue(t.job()).await;
    let (held, text) = (t.claim_one().await, all_characters());
    t.retry_with(&held, HOUR, &text).await.expect("retried");
    assert_eq!(t.show(&held.id).await.errors[0].error.as_deref(), Some(&*text));
}

async fn a_result_of_all_bytes_comes_back(t: Trial) {
    t.enqueue(t.job().retention(HOUR)).await;
    let held = t.claim_one().await;
    t.complete_with(&held, Some(all_bytes())).await.expect("completed");
    assert_eq!(t.show(&held.id).await.result.as_deref(), Some(&all_bytes()[..]));
}

async fn a_payload_that_looks_like_a_record_is_only_a_payload(t: Trial) {
    let payload = "at=1 fp=0 priority=9 unique=k~x kind=evil\nat=2 \n\nrun_at=3";
    assert_comes_back(&t, build(t.job().payload(payload, Codec::Raw))).await;
    let header = t.job().header("priority=9 kind", "a b\nunique=k~x");
    assert_comes_back(&t, build(header)).await;
}

async fn a_payload_survives_every_move(t: Trial) {
    let job = build(t.job().payload(all_bytes(), Codec::Raw).header("\n", "\0"));
    t.offer_all(std::slice::from_ref(&job)).await;
    t.requeue(&t.claim_one().await).await.expect("requeued");
    t.snooze(&t.claim_one().await, secs(1)).await.expect("snoozed");
    t.sweep_after(secs(1)).await;
    t.retry(&t.claim_one().await, secs(1)).await.expect("retried");
    t.sweep_after(secs(1)).await;
    t.claim_one().await;
    t.vanish().await;
    let claimed = t.claim(1).await.remove(0);
    assert_eq!(claimed.envelope, job);
}
