//! A watcher against the model API server, with everything going wrong at times.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use rubelet_kube::{
    Change, Client, ClientConfig, ClientOptions, Connector, Object, WatchTarget, Watcher,
};
use serde_json::{Value, json};
use sim_api::{Restart, SimApi, SimApiConfig, profile};
use tokio::time::{Instant, timeout, timeout_at};

/// Names of the config maps that come and go.
const NAMES: u64 = 12;

async fn server(seed: u64, streaming_lists: bool) -> Arc<SimApi> {
    let config = SimApiConfig {
        seed,
        streaming_lists,
        ..SimApiConfig::default()
    };
    Arc::new(SimApi::start(config).await.expect("the server starts"))
}

fn client(server: &Arc<SimApi>, http2: bool, seed: u64) -> Client {
    let server = Arc::clone(server);
    let connector = Connector::new(move || {
        let server = Arc::clone(&server);
        async move { Ok(server.connect()) }
    });
    let connector = if http2 { connector.http2() } else { connector };
    let config = ClientConfig::anonymous("http://model").expect("a URL");
    let options = ClientOptions {
        seed,
        ..ClientOptions::default()
    };
    Client::new(config.over(connector), options).expect("nothing to read")
}

fn watcher(client: &Client) -> Watcher<Object> {
    client.watch(WatchTarget {
        path: "/api/v1/namespaces/default/configmaps".to_owned(),
        ..WatchTarget::default()
    })
}

/// What a watcher's owner knows: name and version of each object.
#[derive(Default)]
struct KnownObjects {
    objects: BTreeMap<String, u64>,
    /// The newest version of anything.
    newest: u64,
}

impl KnownObjects {
    fn apply(&mut self, change: &Change<Object>) {
        match change {
            Change::Listed(objects) => {
                self.objects = objects.iter().map(|object| named(&object.0)).collect();
            }
            Change::Applied(object) => {
                let (name, version) = named(&object.0);
                assert!(version > self.newest, "{name} went back to {version}");
                self.newest = version;
                self.objects.insert(name, version);
            }
            Change::Deleted(object) => {
                let (name, version) = named(&object.0);
                assert!(version > self.newest, "{name} went back to {version}");
                self.newest = version;
                assert!(
                    self.objects.remove(&name).is_some(),
                    "{name} is deleted twice"
                );
            }
        }
        let newest = self.objects.values().max().copied().unwrap_or_default();
        self.newest = self.newest.max(newest);
    }
}

fn named(object: &Value) -> (String, u64) {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    let version = text("resourceVersion").parse();
    (
        text("name").to_owned(),
        version.expect("versions are numbers here"),
    )
}

fn truth(server: &SimApi) -> BTreeMap<String, u64> {
    let all = server.list("configmaps");
    let here = all
        .iter()
        .filter(|map| map["metadata"]["namespace"] == "default");
    here.map(named).collect()
}

/// A sequence of numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// One change of one config map.
fn change(server: &SimApi, dice: &mut Dice) {
    let name = format!("map-{}", dice.roll(NAMES));
    let object = json!({"metadata": {"name": name, "namespace": "default"},
        "data": {"value": dice.roll(1000).to_string()}});
    let exists = server.get("configmaps", "default", &name).is_some();
    let done = match (exists, dice.roll(3)) {
        (false, _) => server.create("configmaps", &object).map(drop),
        (true, 0) => server
            .delete("configmaps", "default", &name, None)
            .map(drop),
        (true, _) => server.update("configmaps", &object).map(drop),
    };
    done.expect("nothing else changes it");
}

async fn trouble(server: &SimApi, dice: &mut Dice) {
    match dice.roll(12) {
        0 => server.disconnect(),
        1 => server.hang_connections(),
        2 => server.compact(),
        3 => {
            let down = Duration::from_secs(dice.roll(40));
            let lose_history = dice.roll(2) == 0;
            server.restart(Restart { down, lose_history }).await;
        }
        4 => {
            server.set_frozen(true);
            tokio::time::sleep(Duration::from_secs(dice.roll(90))).await;
            server.set_frozen(false);
        }
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn whatever_goes_wrong_the_watcher_ends_up_with_the_truth() {
    for seed in 0..12 {
        let (http2, streaming_lists) = (seed % 2 == 0, seed % 4 < 2);
        let server = server(seed, streaming_lists).await;
        let client = client(&server, http2, seed);
        for rule in profile("rough").expect("a profile") {
            server.add_fault(rule);
        }
        let mut dice = Dice(seed);
        let mut watcher = watcher(&client);
        let mut known = KnownObjects::default();
        for _ in 0..150 {
            for _ in 0..dice.roll(6) {
                change(&server, &mut dice);
            }
            trouble(&server, &mut dice).await;
            let until = Instant::now() + Duration::from_millis(dice.roll(8000));
            while let Ok(change) = timeout_at(until, watcher.next()).await {
                known.apply(&change);
            }
        }
        server.clear_faults();
        // A watch that was told to stall is found out when its bookmarks are missed.
        let calm = Instant::now() + Duration::from_secs(15 * 60);
        while known.objects != truth(&server) {
            let change = timeout_at(calm, watcher.next()).await;
            let Ok(change) = change else {
                let (known, truth) = (&known.objects, truth(&server));
                panic!("seed {seed}: {known:?} is not {truth:?}: {watcher:?}");
            };
            known.apply(&change);
        }
        // What is still being tried again comes to an end, and the truth stays.
        let rest = Instant::now() + Duration::from_secs(180);
        while let Ok(change) = timeout_at(rest, watcher.next()).await {
            known.apply(&change);
        }
        assert_eq!(known.objects, truth(&server), "seed {seed}");
        assert_eq!(*watcher.problem().borrow(), None, "seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watcher_asks_once_in_five_to_ten_minutes() {
    let server = server(1, true).await;
    for http2 in [true, false] {
        let client = client(&server, http2, 1);
        let mut watcher = watcher(&client);
        let mut long = self::watcher(&client).min_timeout(Duration::from_secs(3600));
        watcher.next().await;
        long.next().await;
        server.forget_requests();
        let hour = Duration::from_secs(3600);
        let quiet = timeout(hour, async { tokio::join!(watcher.next(), long.next()) }).await;
        assert!(quiet.is_err(), "nothing changed");
        let asked = server.count(|_| true);
        assert!((6..=13).contains(&asked), "{asked} requests in an hour");
    }
}
