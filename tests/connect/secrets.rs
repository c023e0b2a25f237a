//! No password and no key is shown, whatever goes wrong.

use crate::{
    logs::Logs,
    support::{Certificates, Server, TlsServer},
    world::{hasty, ms, note},
};
use sprag::{Client, RedisStore};
use std::fmt::Debug;

/// As it is, and as a URL has it.
const SECRETS: [&str; 5] = ["s3cr3t", "hunter2", "h%75nter2", "PRIVATE KEY", "s3cr%33t"];

struct Said(String);

impl Said {
    fn add(&mut self, said: &dyn Debug) {
        self.0.push_str(&format!("{said:?}\n{said:#?}\n"));
    }

    fn error<T: Debug>(&mut self, answer: Result<T, sprag::StoreError>) {
        let error = answer.expect_err("it is wrong");
        self.0.push_str(&format!("{error}\n"));
        self.add(&error);
    }

    /// Of a client that cannot do its work: the error, and all that can be shown of it.
    async fn client(&mut self, url: &str) {
        let client = hasty(url);
        self.add(&client);
        self.add(client.store());
        self.add(&client.inspector());
        self.add(&client.enqueue(note(1)));
        self.error(client.ready(ms(0)).await);
        self.error(client.enqueue(note(1)).await);
        self.error(client.enqueue(note(1)).replicas(1, ms(10)).await);
    }
}

fn key_of(all: &Certificates) -> String {
    std::fs::read_to_string(&all.client.key).expect("a key")
}

#[tokio::test]
async fn nothing_shows_a_secret() {
    let logs = Logs::listen();
    let mut said = Said(String::new());
    let tls = TlsServer::setup().asks_clients().start().await;
    let key = key_of(&tls.certificates);
    let percent = |text: &str| text.replace('\n', "%0A").replace(' ', "%20");
    for url in [
        // In each part of a URL that cannot be read.
        "s3cr3t",
        "s3cr3t://h",
        "u:s3cr3t@redis://h",
        "http://u:s3cr3t@h",
        "redis://u:s3cr3t@h:port",
        "redis://u:s3cr3t@h/db",
        "redis://u:1/s3cr3t@h",
        "redis://u:1#s3cr3t@h",
        "redis://u:1?s3cr3t@h",
        "redis://h:1?s3cr3t",
        "redis://u:s3cr3t%ff@h",
        "redis://u:s3cr3t@h?protocol=hunter2",
        "redis://u:s3cr3t@h?pass=hunter2",
        "redis://u:s3cr3t@h?pool=hunter2&allow_eviction=hunter2",
        "redis://u:s3cr3t@",
        "redis://u:s3cr3t@h,i",
        "redis+unix://s3cr3t",
        "redis+unix:///s?pass=s3cr3t&wrong=hunter2",
        "redis+unix:///s?user=u&passwort=s3cr3t",
        "redis+sentinel://u:s3cr3t@h",
        "redis+sentinel://u:s3cr3t@h/m?sentinel_pas=hunter2",
        "redis+cluster://u:s3cr3t@h/7",
        "rediss://u:s3cr3t@h?cert=/c",
        "rediss://u:s3cr3t@h?ca=/no/such",
        &format!("rediss://h?cert={0}&key={0}", percent(&key)),
        &format!(
            "rediss://h?cert={}&key={}",
            tls.certificates.client.cert.display(),
            percent(&key)
        ),
        &format!("rediss://h?cert={0}&key={0}", tls.certificates.client.key.display()),
    ] {
        let builder = RedisStore::builder(url).pool(0, ms(0));
        said.error(builder.build().map(drop));
        said.error(Client::connect(url).map(drop));
    }
    // A password that a URL has and a server does not want, or the other way round.
    let other = Server::start_tcp().await;
    let guarded = Server::setup().tcp().password("hunter2").start().await;
    let mut gone = Server::start_tcp().await;
    gone.kill();
    let user = "u:s3cr%33t@";
    let mut urls = Vec::new();
    for server in [&other, &guarded, &gone] {
        let port = server.port();
        urls.extend([
            format!("redis://{user}127.0.0.1:{port}"),
            format!("redis://:s3cr3t@127.0.0.1:{port}/3?pool=2"),
            format!(
                "redis+sentinel://{user}127.0.0.1:{port}/m?sentinel_user=v&sentinel_pass=h%75nter2"
            ),
            format!("redis+cluster://{user}127.0.0.1:{port}"),
            format!("rediss://{user}127.0.0.1:{port}?ca={}", tls.certificates.ca.display()),
        ]);
    }
    urls.push("redis+unix:///no/such?user=u&pass=s3cr3t".to_owned());
    urls.push(tls.url_of(&format!("{user}localhost"), Some(&tls.certificates.ca), None));
    let stranger = Some(&tls.certificates.stranger);
    urls.push(tls.url_of(&format!("{user}localhost"), Some(&tls.certificates.ca), stranger));
    for url in &urls {
        said.client(url).await;
    }
    said.0.push_str(&logs.all());
    let line = key.lines().nth(1).expect("a key has lines");
    for secret in SECRETS.into_iter().chain([line]) {
        let shown: Vec<_> = said.0.lines().filter(|said| said.contains(secret)).collect();
        assert!(shown.is_empty(), "{secret}: {shown:#?}");
    }
    // It did say something.
    assert!(said.0.len() > 10_000 && said.0.contains("password") && said.0.contains("TLS"));
}
