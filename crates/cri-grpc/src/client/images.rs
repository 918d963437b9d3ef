//! The image service over the connection.

use rubelet_cri::{CriResult, v1};

rpcs! {
    ImageService through images:
    list_images ListImagesRequest ListImagesResponse;
    image_status ImageStatusRequest ImageStatusResponse;
    pull_image PullImageRequest PullImageResponse;
    remove_image RemoveImageRequest RemoveImageResponse;
    image_fs_info ImageFsInfoRequest ImageFsInfoResponse;
}
