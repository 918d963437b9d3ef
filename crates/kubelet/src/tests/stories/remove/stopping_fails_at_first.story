The runtime fails to stop a container, and then succeeds

pod web
  containers:
  - {name: web, image: "app:1"}

at 10s  runtime fails StopContainer twice: device or resource busy
at 20s  manifest is removed
until 40s
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
00:10.0 then  runtime fails StopContainer twice: device or resource busy
00:20.0 then  manifest is removed
00:20.0 why   no source defines the pod any more
00:20.0 why   stops container web: the pod terminates
00:20.0 state Running, ends within 30 s: web Running
00:20.0 event Normal Killing web: Stopping container web
00:20.0 call  StopContainer web#0, grace 30 s
00:20.0 call  StopContainer web#0 failed: StopContainer: device or resource busy
00:20.0 event Warning FailedKillPod error killing pod: failed to "KillContainer" for "web" with KillContainerError: "StopContainer: device or resource busy"
00:21.0 why   stops container web: the pod terminates
00:21.0 event Normal Killing web: Stopping container web
00:21.0 call  StopContainer web#0, grace 29 s
00:21.0 call  StopContainer web#0 failed: StopContainer: device or resource busy
00:21.0 event Warning FailedKillPod error killing pod: failed to "KillContainer" for "web" with KillContainerError: "StopContainer: device or resource busy"
00:23.0 why   stops container web: the pod terminates
00:23.0 event Normal Killing web: Stopping container web
00:23.0 call  StopContainer web#0, grace 27 s
00:23.0 proc  web#0 gets SIGTERM
00:23.0 proc  web#0 exits 143 (Error)
00:23.0 call  StopPodSandbox 0
00:23.0 state Running, ends within 30 s: web Error(143)
00:23.0 cond  PodReadyToStartContainers False
00:23.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:23.0 call  RemoveContainer web#0
00:23.0 call  RemovePodSandbox 0
00:23.0 gone  nothing is left of the pod
