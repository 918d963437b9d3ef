An image name that is not valid

pod web
  containers:
  - {name: web, image: "App::1"}

until 15s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 event Warning InspectFailed web: Failed to apply default image tag "App::1": couldn't parse image name "App::1": the repository name must be lower-case
00:00.0 event Warning Failed web: Error: InvalidImageName
00:00.0 why   container web is in back-off until 00:01.0
00:00.0 state Pending: web InvalidImageName
00:01.0 why   starts container web: it has not run yet
00:01.0 event Warning InspectFailed web: Failed to apply default image tag "App::1": couldn't parse image name "App::1": the repository name must be lower-case
00:01.0 event Warning Failed web: Error: InvalidImageName
00:01.0 why   container web is in back-off until 00:03.0
00:03.0 why   starts container web: it has not run yet
00:03.0 event Warning InspectFailed web: Failed to apply default image tag "App::1": couldn't parse image name "App::1": the repository name must be lower-case
00:03.0 event Warning Failed web: Error: InvalidImageName
00:03.0 why   container web is in back-off until 00:07.0
00:07.0 why   starts container web: it has not run yet
00:07.0 event Warning InspectFailed web: Failed to apply default image tag "App::1": couldn't parse image name "App::1": the repository name must be lower-case
00:07.0 event Warning Failed web: Error: InvalidImageName
00:07.0 why   container web is in back-off until 00:15.0
