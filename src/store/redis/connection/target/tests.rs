use super::*;

/// What a URL says, on one line, secrets included.
fn told(url: &str) -> String {
    let target = match Target::read(url) {
        Ok(target) => target,
        Err(error) => return error.to_string(),
    };
    let servers: Vec<_> = target.servers.iter().map(ToString::to_string).collect();
    let mut told = format!("{:?} {}", target.topology, servers.join(" "));
    let login = |login: &Login| {
        format!(
            "{}:{}",
            login.user.as_deref().unwrap_or("-"),
            login.password.as_deref().unwrap_or("-")
        )
    };
    if target.login != Login::default() {
        told.push_str(&format!(" as {}", login(&target.login)));
    }
    if target.sentinel_login != Login::default() {
        told.push_str(&format!(" sentinel as {}", login(&target.sentinel_login)));
    }
    if target.db != 0 {
        told.push_str(&format!(" db {}", target.db));
    }
    if target.protocol != ProtocolVersion::RESP2 {
        told.push_str(&format!(" {:?}", target.protocol));
    }
    if let Some(TlsFiles { ca, cert, key }) = &target.tls {
        let file =
            |file: &Option<PathBuf>| file.as_ref().map_or("-".into(), |f| f.display().to_string());
        told.push_str(&format!(" tls {} {} {}", file(ca), file(cert), file(key)));
    }
    if target.allow_eviction {
        told.push_str(" evicting");
    }
    if target.pool_size != 8 {
        told.push_str(&format!(" pool {}", target.pool_size));
    }
    told
}

#[test]
fn a_url_says_all_of_its_parts() {
    for (url, says) in [
        ("redis://h", "Single h:6379"),
        ("redis://h/", "Single h:6379"),
        ("redis://h:1", "Single h:1"),
        ("redis://h:", "Single h:6379"),
        ("redis://127.0.0.1:1/2", "Single 127.0.0.1:1 db 2"),
        ("redis://[::1]", "Single [::1]:6379"),
        ("redis://[fe80::1]:7/3", "Single [fe80::1]:7 db 3"),
        ("redis://h.example.org:65535/15/", "Single h.example.org:65535 db 15"),
        ("redis://:p@h", "Single h:6379 as -:p"),
        ("redis://u:p@h:1/2", "Single h:1 as u:p db 2"),
        ("redis://u%40x:p%2F%3A%23%40%25@h", "Single h:6379 as u@x:p/:#@%"),
        ("redis://u:a@b@h", "Single h:6379 as u:a@b"),
        ("redis://u:a:b@h", "Single h:6379 as u:a:b"),
        ("redis://:%C3%A4@h", "Single h:6379 as -:ä"),
        ("redis://h?protocol=resp3", "Single h:6379 RESP3"),
        ("redis://h?protocol=2", "Single h:6379"),
        ("redis://h/1?allow_eviction=yes&pool=3", "Single h:6379 db 1 evicting pool 3"),
        ("redis://h?allow_eviction=no&", "Single h:6379"),
        ("redis+unix:///a/b.sock", "Single /a/b.sock"),
        ("unix:///a%20b", "Single /a b"),
        ("redis+unix:///s?db=4&user=u&pass=p%26", "Single /s as u:p& db 4"),
        ("redis+unix:///s@1?pass=p", "Single /s@1 as -:p"),
    ] {
        assert_eq!(told(url), says, "{url}");
    }
}

#[cfg(all(feature = "tls", feature = "sentinel", feature = "cluster"))]
#[test]
fn a_url_says_how_servers_belong_together() {
    for (url, says) in [
        ("rediss://h", "Single h:6379 tls - - -"),
        ("rediss://u:p@h:7/1?ca=/c%20a.pem", "Single h:7 as u:p db 1 tls /c a.pem - -"),
        ("rediss://h?cert=c&key=k&ca=a", "Single h:6379 tls a c k"),
        (
            "redis+sentinel://h1,h2:7,[::1]/mymaster",
            "Sentinel(\"mymaster\") h1:26379 h2:7 [::1]:26379",
        ),
        ("redis+sentinel://u:p@h/m/3", "Sentinel(\"m\") h:26379 as u:p db 3"),
        (
            "redis+sentinel://:p@h/m%20n?sentinel_user=s&sentinel_pass=q",
            "Sentinel(\"m n\") h:26379 as -:p sentinel as s:q",
        ),
        ("redis+sentinel://h/m?sentinel_pass=q", "Sentinel(\"m\") h:26379 sentinel as -:q"),
        ("rediss+sentinel://h/m?ca=a", "Sentinel(\"m\") h:26379 tls a - -"),
        ("redis+cluster://h1,h2:7001", "Cluster h1:6379 h2:7001"),
        ("redis+cluster://u:p@h/0", "Cluster h:6379 as u:p"),
        ("rediss+cluster://h?ca=a", "Cluster h:6379 tls a - -"),
    ] {
        assert_eq!(told(url), says, "{url}");
    }
}

/// Each has a secret, which no text repeats.
#[test]
fn a_url_that_is_none_is_refused_by_the_name_of_its_part() {
    for (url, part) in [
        ("s3cret", "url as a whole"),
        ("redis:s3cret", "url as a whole"),
        ("http://:s3cret@h", "url scheme: \"http\""),
        ("redis://:s3cret@", "url host"),
        ("redis://:s3cret@h x", "url host"),
        ("redis://:s3cret@h,g", "url host: must be one host"),
        ("redis://:s3cret@0.0.0.0", "url host"),
        ("redis://:s3cret@[::", "url host"),
        ("redis://:s3cret@[s3cret]", "url host"),
        ("redis://:s3cret@[::1]s3cret", "url port"),
        ("redis://:s3cret@h:0", "url port"),
        ("redis://:s3cret@h:65536", "url port"),
        ("redis://:s3cret@h:x", "url port"),
        // A password that is not encoded is read as another part.
        ("redis://:s3cret/s3cret@h", "url port"),
        ("redis://u:s3cret#x@h", "url fragment"),
        ("redis://u:s3cret?x@h", "url port"),
        ("redis://:%FFs3cret@h", "url password: must be UTF-8"),
        ("redis://%FF:s3cret@h", "url user: must be UTF-8"),
        ("redis://s3cret@h", "url user: must be there together with a password"),
        ("redis://:s3cret@h/x", "url database"),
        ("redis://:s3cret@h/-1", "url database"),
        ("redis://:s3cret@h/65536", "url database"),
        ("redis://:s3cret@h?protocol=4", "url protocol"),
        ("redis://:s3cret@h?allow_eviction=true", "url allow_eviction"),
        ("redis://:s3cret@h?pool=0", "url pool"),
        ("redis://:s3cret@h?pool=1001", "url pool"),
        ("redis://:s3cret@h?ca=/a", "url ca"),
        ("redis://h?pass=s3cret", "url option: \"pass\""),
        ("redis://h?sentinel_pass=s3cret", "url option: \"sentinel_pass\""),
        ("redis://h?pool=3&unknown=s3cret", "url option: \"unknown\""),
        ("redis+unix://s3cret", "url path"),
        ("redis+unix:///s?db=s3cret", "url database"),
        ("redis+unix:///s?user=s3cret", "url user"),
    ] {
        let error = told(url);
        assert!(error.contains(part) && !error.contains("s3cret"), "{url}: {error}");
    }
}

#[cfg(all(feature = "tls", feature = "sentinel", feature = "cluster"))]
#[test]
fn a_url_of_several_servers_that_is_none_is_refused_by_the_name_of_its_part() {
    for (url, part) in [
        ("rediss://:s3cret@h#insecure", "url fragment: must be absent: a server's certificate is"),
        ("rediss://:s3cret@h?cert=c", "url cert"),
        ("rediss://:s3cret@h?key=k", "url cert"),
        ("redis+sentinel://:s3cret@h", "url path: must be the master's name"),
        ("redis+sentinel://:s3cret@h/", "url path"),
        ("redis+sentinel://:s3cret@h,/m", "url host"),
        ("redis+sentinel://:s3cret@h/m/x", "url database"),
        ("redis+sentinel://:s3cret@h/m?sentinel_user=u", "url sentinel_user"),
        ("redis+cluster://:s3cret@h/1", "url database: must be 0: a cluster has no others"),
    ] {
        let error = told(url);
        assert!(error.contains(part) && !error.contains("s3cret"), "{url}: {error}");
    }
}

#[cfg(not(feature = "tls"))]
#[test]
fn a_scheme_that_this_build_leaves_out_names_the_feature() {
    for (url, feature) in [
        ("rediss://h", "tls"),
        ("redis+cluster://h", "cluster"),
        ("redis+sentinel://h/m", "sentinel"),
    ] {
        assert!(told(url).contains(&format!("feature {feature:?}")), "{}", told(url));
    }
}

#[test]
fn what_is_printed_has_no_secret() {
    let target = Target::read("redis://user:s3cret@h:1/2").expect("a url");
    let shown = format!("{target:?} {:?}", target.login);
    assert!(
        shown.contains("h:1") && shown.contains("user") && !shown.contains("s3cret"),
        "{shown}"
    );
}
