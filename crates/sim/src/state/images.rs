//! The image store, and the registry.

use std::collections::BTreeMap;

use rubelet_cri::v1;

use super::{RuntimeError, SimState};
use crate::{
    EntryKind, Pull,
    clock::wall,
    image_name::{canonical, repository},
};

#[derive(Default)]
pub(crate) struct Images {
    /// By identifier.
    pub(crate) present: BTreeMap<String, v1::Image>,
    /// By full name.
    pub(crate) pulls: BTreeMap<String, Pull>,
}

/// Sixty-four hexadecimal digits, unique for this text as far as tests are concerned (FNV-1a, four
/// times).
fn digest(text: &str) -> String {
    let round = |seed: u64| {
        let fold = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        text.bytes().fold(0xcbf2_9ce4_8422_2325 ^ seed, fold)
    };
    let digits: String = (0..4).map(|seed| format!("{:016x}", round(seed))).collect();
    format!("sha256:{digits}")
}

impl Images {
    /// Finds an image by identifier, tag or digest, with a full name or a short one.
    pub(crate) fn find(&self, name: &str) -> Option<&v1::Image> {
        let name = canonical(name);
        let mut all = self.present.values();
        all.find(|image| {
            image.id == name
                || image.repo_tags.contains(&name)
                || image.repo_digests.contains(&name)
        })
    }

    /// Adds an image to the store and returns its identifier.
    pub(crate) fn add(&mut self, name: &str) -> String {
        let name = canonical(name);
        let id = digest(&name);
        let (tags, digests) = if name.contains('@') {
            (Vec::new(), vec![name])
        } else {
            let manifest = digest(&format!("manifest of {name}"));
            let by_digest = format!("{}@{manifest}", repository(&name));
            (vec![name], vec![by_digest])
        };
        let image = v1::Image {
            id: id.clone(),
            repo_tags: tags,
            repo_digests: digests,
            size: 1 << 20,
            ..Default::default()
        };
        self.present.insert(id.clone(), image);
        id
    }
}

impl SimState {
    pub(crate) fn list_images(
        &mut self,
        request: &v1::ListImagesRequest,
    ) -> Result<v1::ListImagesResponse, RuntimeError> {
        let filter = request.filter.as_ref();
        let wanted = filter.and_then(|filter| filter.image.clone());
        let images = match wanted
            .map(|spec| spec.image)
            .filter(|name| !name.is_empty())
        {
            Some(name) => self.images.find(&name).into_iter().cloned().collect(),
            None => self.images.present.values().cloned().collect(),
        };
        Ok(v1::ListImagesResponse { images })
    }

    pub(crate) fn image_status(
        &mut self,
        request: &v1::ImageStatusRequest,
    ) -> Result<v1::ImageStatusResponse, RuntimeError> {
        let name = request.image.clone().unwrap_or_default().image;
        Ok(v1::ImageStatusResponse {
            image: self.images.find(&name).cloned(),
            ..Default::default()
        })
    }

    /// The scripted pull of this image, if a registry has it.
    pub(crate) fn pull(&self, name: &str) -> Result<Pull, RuntimeError> {
        let full = canonical(name);
        self.images.pulls.get(&full).cloned().ok_or_else(|| {
            RuntimeError::not_found(format!(
                "failed to pull and unpack image {full:?}: failed to resolve image: {full}: not found"
            ))
        })
    }

    pub(crate) fn pulled(&mut self, name: &str) -> v1::PullImageResponse {
        let image_ref = self.images.add(name);
        self.record(EntryKind::ImagePulled(canonical(name)));
        v1::PullImageResponse { image_ref }
    }

    pub(crate) fn remove_image(
        &mut self,
        request: &v1::RemoveImageRequest,
    ) -> Result<v1::RemoveImageResponse, RuntimeError> {
        let name = request.image.clone().unwrap_or_default().image;
        if let Some(id) = self.images.find(&name).map(|image| image.id.clone()) {
            self.images.present.remove(&id);
            self.record(EntryKind::ImageRemoved(canonical(&name)));
        }
        Ok(v1::RemoveImageResponse::default())
    }

    pub(crate) fn image_fs_info(
        &mut self,
        _: &v1::ImageFsInfoRequest,
    ) -> Result<v1::ImageFsInfoResponse, RuntimeError> {
        let value = |value| Some(v1::UInt64Value { value });
        let images = self.images.present.values();
        let count = u64::try_from(self.images.present.len()).unwrap_or(u64::MAX);
        let usage = v1::FilesystemUsage {
            timestamp: wall(self.clock.now()),
            fs_id: Some(v1::FilesystemIdentifier {
                mountpoint: "/var/lib/sim/images".to_owned(),
            }),
            used_bytes: value(images.map(|image| image.size).sum()),
            inodes_used: value(count),
        };
        Ok(v1::ImageFsInfoResponse {
            image_filesystems: vec![usage.clone()],
            container_filesystems: vec![usage],
        })
    }
}
