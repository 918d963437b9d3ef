The sandbox is removed with its containers, not by the agent

pod web
  containers:
  - {name: web, image: "app:1"}

at 20s  sandbox vanishes
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
00:20.0 then  sandbox vanishes
00:20.0 proc  web#0 exits 137 (Error)
00:20.0 why   the pod has no sandbox
00:20.0 state Running: web ContainerCreating x1 after ContainerStatusUnknown(137)
00:20.0 cond  PodReadyToStartContainers False
00:20.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:20.0 call  RunPodSandbox 0
00:20.0 why   starts container web: it has not run yet
00:20.0 cond  PodReadyToStartContainers True
00:20.0 call  CreateContainer web#1
00:20.0 call  StartContainer web#1
00:20.0 why   everything runs as specified
00:20.0 state Running: web Running x1
00:20.0 cond  Ready True
