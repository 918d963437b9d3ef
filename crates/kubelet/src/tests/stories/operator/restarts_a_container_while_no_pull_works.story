An operator does not wait for the next attempt of a pull

pod web
  containers:
  - {name: web, image: "app:3"}

first  image app:3 can't be pulled: not found
at 40s  image app:3 can be pulled
at 41s  operator restarts web
until 60s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  PullImage app:3
00:00.0 event Warning Failed web: Failed to pull image "app:3": PullImage: not found
00:00.0 event Warning Failed web: Error: ErrImagePull
00:00.0 why   container web is in back-off until 00:10.0
00:00.0 state Pending: web ErrImagePull
00:05.0 state Pending: web ImagePullBackOff
00:05.0 event Normal BackOff web: Back-off pulling image "app:3"
00:05.0 event Warning Failed web: Error: ImagePullBackOff
00:10.0 why   starts container web: it has not run yet
00:10.0 call  PullImage app:3
00:10.0 event Warning Failed web: Failed to pull image "app:3": PullImage: not found
00:10.0 event Warning Failed web: Error: ErrImagePull
00:10.0 why   container web is in back-off until 00:30.0
00:10.0 state Pending: web ErrImagePull
00:15.0 state Pending: web ImagePullBackOff
00:15.0 event Normal BackOff web: Back-off pulling image "app:3"
00:15.0 event Warning Failed web: Error: ImagePullBackOff
00:30.0 why   starts container web: it has not run yet
00:30.0 call  PullImage app:3
00:30.0 event Warning Failed web: Failed to pull image "app:3": PullImage: not found
00:30.0 event Warning Failed web: Error: ErrImagePull
00:30.0 why   container web is in back-off until 01:10.0
00:30.0 state Pending: web ErrImagePull
00:35.0 state Pending: web ImagePullBackOff
00:35.0 event Normal BackOff web: Back-off pulling image "app:3"
00:35.0 event Warning Failed web: Error: ImagePullBackOff
00:40.0 then  image app:3 can be pulled
00:41.0 then  operator restarts web
00:41.0 why   starts container web: it has not run yet
00:41.0 call  PullImage app:3
00:41.0 event Normal Pulled web: Successfully pulled image "app:3" in 0s (0s including waiting). Image size: 1048576 bytes.
00:41.0 call  CreateContainer web#0
00:41.0 call  StartContainer web#0
00:41.0 why   everything runs as specified
00:41.0 state Running: web Running
00:41.0 cond  Ready True
