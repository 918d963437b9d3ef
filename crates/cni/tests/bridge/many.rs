//! As many pods as a node may have, and more than a bridge has ports.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use rubelet_cni::PodNetwork;
use tokio::time::Instant;

use crate::world::{Pod, World, at, live, tcp, veths, veths_become};

#[test]
fn eleven_hundred_pods_come_and_go() {
    World::run(&["10.99.0.0/16"], async |world| {
        let network = world.network();
        network.status().await.unwrap();
        let mut pods: Vec<Pod> = (0..1100)
            .map(|number| Pod::alone(&format!("pod{number}")))
            .collect();
        for pod in &mut pods[..20] {
            let number = pod.request.pod_name[3..].parse::<u16>().unwrap();
            pod.request.port_mappings = vec![tcp(8000 + number, 80)];
        }
        let mut took = Vec::new();
        for pod in &mut pods {
            let began = Instant::now();
            pod.result = network.add(&pod.request).await.unwrap();
            took.push(began.elapsed());
        }
        tell("add", &mut took[20..].to_vec());
        tell("add with a host port", &mut took[..20].to_vec());
        tell("add, the last hundred", &mut took[1000..].to_vec());
        let addresses: BTreeSet<_> = pods.iter().map(Pod::ip).collect();
        assert_eq!((addresses.len(), veths().len()), (1100, 1100));
        let listener = pods[0].listen(80);
        for client in [&pods[1], &pods[1099]] {
            assert_eq!(
                client.reaches(at(pods[0].ip(), 80), &listener),
                Some(client.ip())
            );
        }
        let began = Instant::now();
        let fresh = world.network();
        fresh
            .reconcile(&live(&pods.iter().collect::<Vec<_>>()))
            .await
            .unwrap();
        println!("reconciliation with 1100 pods: {:?}", began.elapsed());
        let began = Instant::now();
        let mut took = Vec::new();
        for pod in &pods[..100] {
            let began = Instant::now();
            fresh.del(&pod.request).await.unwrap();
            took.push(began.elapsed());
        }
        tell("del", &mut took);
        all_at_once(&fresh, &pods[100..]).await;
        println!("del of 1100: {:?}", began.elapsed());
        veths_become(0);
        println!("and the kernel is done: {:?}", began.elapsed());
        let pods: Vec<Pod> = (0..200)
            .map(|number| Pod::alone(&format!("new{number}")))
            .collect();
        let began = Instant::now();
        let tasks: Vec<_> = pods
            .iter()
            .map(|pod| {
                let (network, request) = (Arc::clone(&fresh), pod.request.clone());
                tokio::spawn(async move { network.add(&request).await })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
        println!("200 added at once: {:?}", began.elapsed());
    });
}

async fn all_at_once(network: &Arc<dyn PodNetwork>, pods: &[Pod]) {
    let tasks: Vec<_> = pods
        .iter()
        .map(|pod| {
            let (network, request) = (Arc::clone(network), pod.request.clone());
            tokio::spawn(async move { network.del(&request).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
}

fn tell(what: &str, took: &mut [Duration]) {
    took.sort();
    let at = |part: usize| took[(took.len() * part / 100).min(took.len() - 1)];
    println!("{what}: p50 {:?}, p99 {:?}", at(50), at(99));
}
