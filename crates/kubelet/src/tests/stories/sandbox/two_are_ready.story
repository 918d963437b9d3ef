Two sandboxes of one pod are ready: both are removed, and a new one is created

pod web
  containers:
  - {name: web, image: "app:1"}

at 20s  another sandbox appears
until 30s
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
00:20.0 then  another sandbox appears
00:20.0 why   2 sandboxes are ready, one is allowed
00:20.0 why   stops container web: the pod's sandbox is replaced
00:20.0 cond  PodReadyToStartContainers False
00:20.0 event Normal Killing web: Stopping container web
00:20.0 call  StopContainer web#0, grace 30 s
00:20.0 proc  web#0 gets SIGTERM
00:20.0 proc  web#0 exits 143 (Error)
00:20.0 call  StopPodSandbox 1
00:20.0 call  StopPodSandbox 0
00:20.0 event Normal SandboxChanged Pod sandbox changed, it will be killed and re-created.
00:20.0 call  RunPodSandbox 2
00:20.0 why   starts container web: its sandbox was replaced
00:20.0 state Running: web Error(143)
00:20.0 cond  PodReadyToStartContainers True
00:20.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:20.0 call  CreateContainer web#1
00:20.0 call  StartContainer web#1
00:20.0 call  RemovePodSandbox 1
00:20.0 why   everything runs as specified
00:20.0 state Running: web Running x1
00:20.0 cond  Ready True
