A container that can't be created is retried, with a back-off of 1 to 10 seconds

pod web
  containers:
  - {name: web, image: "app:1"}

first  runtime fails CreateContainer: no space left on device
at 20s  runtime works again
until 30s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  CreateContainer web#0 failed: CreateContainer: no space left on device
00:00.0 event Warning Failed web: Error: CreateContainer: no space left on device
00:00.0 why   container web is in back-off until 00:01.0
00:00.0 state Pending: web CreateContainerError
00:01.0 why   starts container web: it has not run yet
00:01.0 call  CreateContainer web#0
00:01.0 call  CreateContainer web#0 failed: CreateContainer: no space left on device
00:01.0 event Warning Failed web: Error: CreateContainer: no space left on device
00:01.0 why   container web is in back-off until 00:03.0
00:03.0 why   starts container web: it has not run yet
00:03.0 call  CreateContainer web#0
00:03.0 call  CreateContainer web#0 failed: CreateContainer: no space left on device
00:03.0 event Warning Failed web: Error: CreateContainer: no space left on device
00:03.0 why   container web is in back-off until 00:07.0
00:07.0 why   starts container web: it has not run yet
00:07.0 call  CreateContainer web#0
00:07.0 call  CreateContainer web#0 failed: CreateContainer: no space left on device
00:07.0 event Warning Failed web: Error: CreateContainer: no space left on device
00:07.0 why   container web is in back-off until 00:15.0
00:15.0 why   starts container web: it has not run yet
00:15.0 call  CreateContainer web#0
00:15.0 call  CreateContainer web#0 failed: CreateContainer: no space left on device
00:15.0 event Warning Failed web: Error: CreateContainer: no space left on device
00:15.0 why   container web is in back-off until 00:25.0
00:20.0 then  runtime works again
00:25.0 why   starts container web: it has not run yet
00:25.0 call  CreateContainer web#0
00:25.0 call  StartContainer web#0
00:25.0 why   everything runs as specified
00:25.0 state Running: web Running
00:25.0 cond  Ready True
