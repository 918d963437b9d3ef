A running container is edited to an image that can't be pulled, and back

pod web
  containers:
  - {name: web, image: "app:1"}

first  image app:3 can't be pulled: not found
at 20s  edit: app:1 -> app:3
at 40s  edit: app:3 -> app:1
until 50s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 why   everything runs as specified
00:00.0 state Running: web Running
00:00.0 cond  Ready True
00:20.0 then  edit: app:1 -> app:3
00:20.0 why   stops container web: its definition changed
00:20.0 why   starts container web: its definition changed
00:20.0 event Normal Killing web: Container web definition changed, will be restarted
00:20.0 call  StopContainer web#0, grace 30 s
00:20.0 proc  web#0 gets SIGTERM
00:20.0 proc  web#0 exits 143 (Error)
00:20.0 call  PullImage app:3
00:20.0 event Warning Failed web: Failed to pull image "app:3": PullImage: not found
00:20.0 event Warning Failed web: Error: ErrImagePull
00:20.0 why   container web is in back-off until 00:30.0
00:20.0 state Running: web ErrImagePull after Error(143)
00:20.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:25.0 state Running: web ImagePullBackOff after Error(143)
00:25.0 event Normal BackOff web: Back-off pulling image "app:3"
00:25.0 event Warning Failed web: Error: ImagePullBackOff
00:30.0 why   starts container web: its definition changed
00:30.0 call  PullImage app:3
00:30.0 event Warning Failed web: Failed to pull image "app:3": PullImage: not found
00:30.0 event Warning Failed web: Error: ErrImagePull
00:30.0 why   container web is in back-off until 00:50.0
00:30.0 state Running: web ErrImagePull after Error(143)
00:35.0 state Running: web ImagePullBackOff after Error(143)
00:35.0 event Normal BackOff web: Back-off pulling image "app:3"
00:35.0 event Warning Failed web: Error: ImagePullBackOff
00:40.0 then  edit: app:3 -> app:1
00:40.0 why   starts container web: it exited with code 143
00:40.0 state Running: web Error(143)
00:40.0 call  CreateContainer web#1
00:40.0 call  StartContainer web#1
00:40.0 why   everything runs as specified
00:40.0 state Running: web Running x1
00:40.0 cond  Ready True
