//! Images: lookup by full or short name, and scripted pulls.

use std::time::Duration;

use rubelet_cri::{CriErrorKind, CriResult, ImageService, v1};
use rubelet_sim::{Pull, Sim};
use tokio::time::{Instant, timeout};

use crate::pod::secs;

fn spec(image: &str) -> Option<v1::ImageSpec> {
    Some(v1::ImageSpec {
        image: image.to_owned(),
        ..Default::default()
    })
}

async fn pull(sim: &Sim, image: &str) -> CriResult<String> {
    let request = v1::PullImageRequest {
        image: spec(image),
        ..Default::default()
    };
    Ok(sim.pull_image(request).await?.image_ref)
}

async fn look_up(sim: &Sim, image: &str) -> Option<v1::Image> {
    let request = v1::ImageStatusRequest {
        image: spec(image),
        ..Default::default()
    };
    let answer = sim.image_status(request).await;
    answer.expect("looking up never fails").image
}

#[tokio::test(start_paused = true)]
async fn an_image_is_found_by_tag_digest_and_identifier_until_it_is_removed() {
    let sim = Sim::new();
    let id = sim.add_image("busybox:1.36");
    sim.edit_image("busybox:1.36", |image| image.size = 42);
    let image = look_up(&sim, "busybox:1.36").await.unwrap();
    assert_eq!((&image.id, image.size), (&id, 42));
    assert_eq!(image.repo_tags, ["docker.io/library/busybox:1.36"]);
    for name in [
        &id,
        &image.repo_digests[0],
        "docker.io/library/busybox:1.36",
    ] {
        assert_eq!(look_up(&sim, name).await.as_ref(), Some(&image), "{name}");
    }
    assert_eq!(look_up(&sim, "busybox").await, None);

    for _ in 0..2 {
        let request = v1::RemoveImageRequest { image: spec(&id) };
        sim.remove_image(request).await.unwrap();
    }
    assert_eq!(look_up(&sim, "busybox:1.36").await, None);
}

#[tokio::test(start_paused = true)]
async fn pulls_have_the_scripted_result() {
    let sim = Sim::new();
    assert!(pull(&sim, "nowhere").await.unwrap_err().is_not_found());

    sim.on_pull("app", Pull::succeeds().taking(secs(20)));
    let start = Instant::now();
    let id = pull(&sim, "app:latest").await.unwrap();
    assert_eq!(start.elapsed().as_secs(), 20);
    assert_eq!(look_up(&sim, "app").await.unwrap().id, id);

    sim.on_pull("bad", Pull::fails("no space left on device"));
    let error = pull(&sim, "bad").await.unwrap_err();
    assert_eq!(error.to_string(), "PullImage: no space left on device");
    sim.on_pull(
        "bad",
        Pull::fails_as(CriErrorKind::Unavailable, "registry down"),
    );
    assert!(pull(&sim, "bad").await.unwrap_err().is_unavailable());

    sim.on_pull("stuck", Pull::hangs());
    let day = Duration::from_secs(86_400);
    timeout(day, pull(&sim, "stuck"))
        .await
        .expect_err("a pull has no deadline of its own");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_pull_leaves_no_image() {
    let sim = Sim::new();
    sim.on_pull("app", Pull::succeeds().taking(secs(20)));
    timeout(secs(19), pull(&sim, "app"))
        .await
        .expect_err("it takes 20 s");
    tokio::time::sleep(secs(60)).await;
    assert_eq!(look_up(&sim, "app").await, None);
}
