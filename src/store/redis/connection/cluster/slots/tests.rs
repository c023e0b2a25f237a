use super::*;

fn at(port: u16) -> Server {
    Server::Tcp("h".into(), port)
}

fn range(first: i64, last: i64, host: Value, port: i64) -> Value {
    let node = Value::Array(vec![host, Value::Int(port), Value::BulkString(b"id".to_vec())]);
    let replica = Value::Array(vec![Value::BulkString(b"r".to_vec()), Value::Int(port + 1)]);
    Value::Array(vec![Value::Int(first), Value::Int(last), node, replica])
}

fn host(name: &str) -> Value {
    Value::BulkString(name.into())
}

#[test]
fn a_key_has_the_slot_that_the_specification_says() {
    // From the specification, and CLUSTER KEYSLOT.
    for (key, expected) in [("123456789", 12_739), ("foo", 12_182), ("{user1000}.following", 3_443)]
    {
        assert_eq!(slot(key.as_bytes()), expected, "{key}");
    }
    assert_eq!(slot(b"foo{}{bar}"), slot(b"foo{}{bar}"));
    assert_ne!(slot(b"foo{}{bar}"), slot(b"bar"), "an empty tag is none");
    assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
    assert_eq!(slot(b"foo{bar}{zap}"), slot(b"bar"));
    assert_eq!(slot(b"sprag:{email}:jobs"), slot(b"other:{email}:wake"));
}

#[test]
fn a_command_goes_where_its_key_is() {
    let cmd = |words: &[&str]| {
        let mut cmd = Cmd::new();
        words.iter().for_each(|word| {
            cmd.arg(*word);
        });
        cmd
    };
    let email = Some(slot(b"email"));
    for words in [
        &["EVALSHA", "sha", "2", "sprag:{email}:jobs", "sprag:{email}:meta", "x"][..],
        &["EVAL", "return 1", "1", "sprag:{email}:jobs"],
        &["HEXISTS", "sprag:{email}:meta", "unfinished"],
        &["BLPOP", "sprag:{email}:wake", "1.5"],
    ] {
        assert_eq!(slot_of(&cmd(words)), email, "{words:?}");
    }
    for words in [
        &["PING"][..],
        &["TIME"],
        &["INFO"],
        &["SCRIPT", "LOAD", "{email}"],
        &["PUBLISH", "sprag:{email}", "x"],
        &["CONFIG", "GET", "{email}"],
        &["EVALSHA", "sha", "0"],
    ] {
        assert_eq!(slot_of(&cmd(words)), None, "{words:?}");
    }
}

#[test]
fn a_map_says_whose_each_slot_is() {
    let answer = Value::Array(vec![
        range(0, 99, host("h"), 1),
        range(200, 16_383, host("h"), 2),
        // It does not know its own address: that under which it was asked.
        range(100, 199, Value::Nil, 3),
    ]);
    let map = Map::read(&answer, &Server::Tcp("asked".into(), 9)).expect("a map");
    let own = Server::Tcp("asked".into(), 3);
    for (slot, master) in
        [(0, at(1)), (99, at(1)), (100, own.clone()), (199, own), (200, at(2)), (16_383, at(2))]
    {
        assert_eq!(map.master(slot), Some(&master), "{slot}");
    }
    assert_eq!(map.masters().len(), 3);
    assert!(map.replicas.contains(&Server::Tcp("r".into(), 2)));
}

#[test]
fn a_slot_that_nobody_has_has_no_master() {
    let map = Map::read(&Value::Array(vec![range(10, 19, host("h"), 1)]), &at(9)).expect("a map");
    assert_eq!(map.master(9), None);
    assert_eq!(map.master(20), None);
}

#[test]
fn what_is_no_map_is_none() {
    for answer in [
        Value::Nil,
        Value::Array(vec![]),
        Value::Array(vec![Value::Int(1)]),
        Value::Array(vec![Value::Array(vec![Value::Int(0), Value::Int(1)])]),
        Value::Array(vec![range(5, 4, host("h"), 1)]),
        Value::Array(vec![range(0, 16_384, host("h"), 1)]),
        Value::Array(vec![range(-1, 4, host("h"), 1)]),
        Value::Array(vec![range(0, 4, host("h"), 70_000)]),
    ] {
        assert_eq!(Map::read(&answer, &at(9)), None, "{answer:?}");
    }
}

#[test]
fn a_slot_that_moved_is_the_only_one_that_did() {
    for moved in [0, 1, 50, 98, 99] {
        let mut map =
            Map::read(&Value::Array(vec![range(0, 99, host("h"), 1)]), &at(9)).expect("a map");
        map.moved(moved, at(2));
        for slot in 0..100 {
            let expected = at(if slot == moved { 2 } else { 1 });
            assert_eq!(map.master(slot), Some(&expected), "{moved}: {slot}");
        }
        assert_eq!(map.master(100), None);
        map.moved(moved, at(3));
        assert_eq!(map.master(moved), Some(&at(3)), "again");
    }
    let mut map = Map::default();
    map.moved(7, at(2));
    assert_eq!((map.master(6), map.master(7), map.master(8)), (None, Some(&at(2)), None));
}
