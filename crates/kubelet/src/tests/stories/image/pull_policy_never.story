An image that may not be pulled is absent, until it is loaded by hand

pod web
  containers:
  - {name: web, image: "app:3", imagePullPolicy: Never}

at 20s  image app:3 is there
until 40s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 event Warning ErrImageNeverPull web: Container image "app:3" is not present with pull policy of Never
00:00.0 event Warning Failed web: Error: ErrImageNeverPull
00:00.0 why   container web is in back-off until 00:01.0
00:00.0 state Pending: web ErrImageNeverPull
00:01.0 why   starts container web: it has not run yet
00:01.0 event Warning ErrImageNeverPull web: Container image "app:3" is not present with pull policy of Never
00:01.0 event Warning Failed web: Error: ErrImageNeverPull
00:01.0 why   container web is in back-off until 00:03.0
00:03.0 why   starts container web: it has not run yet
00:03.0 event Warning ErrImageNeverPull web: Container image "app:3" is not present with pull policy of Never
00:03.0 event Warning Failed web: Error: ErrImageNeverPull
00:03.0 why   container web is in back-off until 00:07.0
00:07.0 why   starts container web: it has not run yet
00:07.0 event Warning ErrImageNeverPull web: Container image "app:3" is not present with pull policy of Never
00:07.0 event Warning Failed web: Error: ErrImageNeverPull
00:07.0 why   container web is in back-off until 00:15.0
00:15.0 why   starts container web: it has not run yet
00:15.0 event Warning ErrImageNeverPull web: Container image "app:3" is not present with pull policy of Never
00:15.0 event Warning Failed web: Error: ErrImageNeverPull
00:15.0 why   container web is in back-off until 00:25.0
00:20.0 then  image app:3 is there
00:25.0 why   starts container web: it has not run yet
00:25.0 call  CreateContainer web#0
00:25.0 call  StartContainer web#0
00:25.0 why   everything runs as specified
00:25.0 state Running: web Running
00:25.0 cond  Ready True
