The runtime creates a sandbox and its response is lost: that sandbox is used

pod web
  containers:
  - {name: web, image: "app:1"}

first  runtime hangs in RunPodSandbox after its effect
at 5s  runtime restarts
at 5s  runtime goes on
until 20s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:05.0 then  runtime restarts
00:05.0 then  runtime goes on
00:05.0 call  RunPodSandbox 0 failed: RunPodSandbox: runtime unavailable: the connection was lost: the model runtime went down
00:05.0 event Warning FailedCreatePodSandBox Failed to create pod sandbox: RunPodSandbox: runtime unavailable: the connection was lost: the model runtime went down
00:05.0 why   starts container web: it has not run yet
00:05.0 cond  PodReadyToStartContainers True
00:05.0 call  CreateContainer web#0
00:05.0 call  StartContainer web#0
00:05.0 why   everything runs as specified
00:05.0 state Running: web Running
00:05.0 cond  Ready True
