//! Network plugins that fail or hang.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use anyhow::Result;
use rubelet_cri::RuntimeService;
use rubelet_cri::v1;
use rubelet_testbed::cleanup::processes;
use rubelet_testbed::{Embedded, Served, agent, proc, wait};
use serde_json::json;

use crate::lab::{Lab, shim_of};
use crate::subject::{TIMEOUT, run};

/// Behaves as the file `how` says: succeeds, `fail`, or `hang`. Records each call.
const PLUGIN: &str = r#"#!/bin/sh
dir=$(dirname "$0")
cat > /dev/null
echo "$CNI_COMMAND $CNI_CONTAINERID" >> "$dir/calls"
case "$CNI_COMMAND" in VERSION)
    echo '{"cniVersion":"1.0.0","supportedVersions":["0.4.0","1.0.0"]}'; exit 0;;
esac
case "$(cat "$dir/how-$CNI_COMMAND" 2>/dev/null)" in
fail) echo '{"cniVersion":"1.0.0","code":11,"msg":"the plugin is in a bad mood","details":"today"}'; exit 1;;
hang) echo $$ >> "$dir/hanging"; exec sleep 10000;;
nonsense) echo 'no json at all'; exit 0;;
crash) kill -SEGV $$;;
esac
[ "$CNI_COMMAND" = ADD ] && echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"'$CNI_NETNS'"}],"ips":[{"address":"10.99.0.7/24","interface":0}]}'
exit 0
"#;

fn start() -> Result<(Lab, std::path::PathBuf)> {
    let program = agent::binary()?;
    let embedded = Embedded::start_program(&program)?;
    let bin = embedded.cni_bin_dir();
    std::fs::create_dir_all(&bin)?;
    let plugin = bin.join("moody");
    std::fs::write(&plugin, PLUGIN)?;
    std::fs::set_permissions(&plugin, PermissionsExt::from_mode(0o755))?;
    let list = json!({
        "cniVersion": "1.0.0",
        "name": "moody",
        "plugins": [{ "type": "moody" }],
    });
    let conf = embedded.cni_conf_dir().join("10-moody.conflist");
    std::fs::write(conf, list.to_string())?;
    Ok((Lab::on(Served::start_in(embedded, &program)?)?, bin))
}

#[test]
fn a_failing_plugin_fails_its_pod_and_is_called_with_del() -> Result<()> {
    let (lab, bin) = start()?;
    for how in ["fail", "nonsense", "crash"] {
        std::fs::write(bin.join("how-ADD"), how)?;
        std::fs::write(bin.join("calls"), "")?;
        let config = lab.subject.sandbox_config("moody")?;
        let answer = lab.subject.ask(run(lab.subject.client(), &config, ""));
        let error = answer.expect_err("the plugin doesn't do it").to_string();
        assert!(error.contains("moody"), "{error}");
        if how == "fail" {
            assert!(error.contains("the plugin is in a bad mood"), "{error}");
        }
        let calls = std::fs::read_to_string(bin.join("calls"))?;
        assert!(calls.contains("DEL "), "{how}: {calls}");
        std::fs::remove_file(bin.join("how-ADD"))?;
        let sandbox = lab.subject.sandbox_of(config)?;
        assert_eq!(sandbox.ip()?, "10.99.0.7");
        drop(sandbox);
        lab.assert_clean()?;
    }
    Ok(())
}

#[test]
fn a_failing_del_keeps_the_pod_until_it_succeeds() -> Result<()> {
    let (lab, bin) = start()?;
    let sandbox = lab.subject.sandbox("kept")?;
    std::fs::write(bin.join("how-DEL"), "fail")?;
    let client = lab.subject.client();
    let stopped = lab
        .subject
        .ask(crate::subject::stop_sandbox(client, &sandbox.id));
    let error = stopped
        .expect_err("its network is not given back")
        .to_string();
    assert!(error.contains("the plugin is in a bad mood"), "{error}");
    sandbox.own_status()?;
    // Not even a restart loses it.
    lab.served().kill9()?;
    lab.subject.resume()?;
    std::fs::remove_file(bin.join("how-DEL"))?;
    lab.subject
        .ask(crate::subject::stop_sandbox(client, &sandbox.id))?;
    drop(sandbox);
    lab.assert_clean()
}

#[test]
fn a_hanging_plugin_blocks_its_own_pod_only() -> Result<()> {
    let (lab, bin) = start()?;
    let beside = lab.subject.sandbox("beside")?;
    let running = beside.waiting("main")?;
    std::fs::write(bin.join("how-ADD"), "hang")?;
    let config = lab.subject.sandbox_config("hanging")?;
    let client = lab.subject.client();
    lab.subject.ask(async {
        let others = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            crate::subject::exec(client, &running, &["true"], 10).await?;
            client.list_pod_sandbox(Default::default()).await?;
            client.status(v1::StatusRequest::default()).await?;
            Ok::<_, anyhow::Error>(())
        };
        tokio::select! {
            _ = run(client, &config, "") => anyhow::bail!("the plugin doesn't hang"),
            done = tokio::time::timeout(Duration::from_secs(60), others) => done??,
        }
        Ok(())
    })?;
    // Another pod, on the host network.
    std::fs::remove_file(bin.join("how-ADD"))?;
    lab.assert_works()?;
    // A restart of the runtime does not wait for the plugin either.
    lab.served().kill9()?;
    lab.subject.resume()?;
    assert_eq!(lab.subject.truth.exec(&running, &["echo", "yes"])?, "yes\n");
    drop(beside);
    wait::until("the pod that hung can be removed", TIMEOUT, || {
        Ok(lab.remove_all().ok())
    })?;
    lab.assert_clean()
}

#[test]
fn hanging_plugins_do_not_block_a_start_of_the_runtime() -> Result<()> {
    let (lab, bin) = start()?;
    let beside = lab.subject.sandbox("beside")?;
    let running = beside.waiting("main")?;
    let dead = ["one", "two", "three"].map(|name| lab.subject.sandbox(name));
    let dead = dead.into_iter().collect::<Result<Vec<_>>>()?;
    std::fs::write(bin.join("how-DEL"), "hang")?;
    lab.served().kill9()?;
    for sandbox in &dead {
        processes::kill(shim_of(&sandbox.id)?)?;
    }
    // A plugin may take a minute, and there are three to call.
    lab.subject.resume()?;
    assert_eq!(lab.subject.truth.exec(&running, &["echo", "yes"])?, "yes\n");
    let new = lab.subject.sandbox("new")?;
    assert_eq!(new.output("main", "echo yes")?, "yes\n");
    let hanging = std::fs::read_to_string(bin.join("hanging"))?;
    let still = |pid: &str| pid.parse().is_ok_and(|pid| proc::Stat::of(pid).is_some());
    assert!(hanging.lines().any(still), "the plugins were waited for");
    let calls = std::fs::read_to_string(bin.join("calls"))?;
    for sandbox in &dead {
        assert!(calls.contains(&format!("DEL {}", sandbox.id)), "{calls}");
    }
    // The next start finds the leftovers.
    std::fs::remove_file(bin.join("how-DEL"))?;
    lab.served().kill9()?;
    lab.subject.resume()?;
    drop((beside, dead, new));
    lab.assert_clean()
}

#[test]
fn without_a_valid_configuration_the_network_is_not_ready() -> Result<()> {
    let (lab, _) = start()?;
    let conf = lab
        .served()
        .environment()
        .cni_conf_dir()
        .join("10-moody.conflist");
    let good = std::fs::read_to_string(&conf)?;
    std::fs::write(&conf, &good[..good.len() / 2])?;
    let condition = || -> Result<v1::RuntimeCondition> {
        let request = v1::StatusRequest::default();
        let answer = lab.subject.ask(lab.subject.client().status(request))?;
        let conditions = answer.status.unwrap_or_default().conditions;
        let found = conditions
            .into_iter()
            .find(|one| one.r#type == "NetworkReady");
        Ok(found.unwrap_or_default())
    };
    let told = wait::until("the network is not ready", TIMEOUT, || {
        Ok(Some(condition()?).filter(|one| !one.status))
    })?;
    assert!(told.message.contains("10-moody.conflist"), "{told:?}");
    std::fs::write(&conf, good)?;
    wait::until("the network is ready", TIMEOUT, || {
        Ok(condition()?.status.then_some(()))
    })?;
    lab.assert_works()
}
