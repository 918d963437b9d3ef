A sandbox that can't be created is retried, with a longer back-off each time

pod web
  containers:
  - {name: web, image: "app:1"}

first  runtime fails RunPodSandbox twice: failed to set up network: no addresses left
until 10s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 call  RunPodSandbox 0 failed: RunPodSandbox: failed to set up network: no addresses left
00:00.0 event Warning FailedCreatePodSandBox Failed to create pod sandbox: RunPodSandbox: failed to set up network: no addresses left
00:00.0 why   creating the sandbox failed; next attempt at 00:01.0
00:01.0 call  RunPodSandbox 0
00:01.0 call  RunPodSandbox 0 failed: RunPodSandbox: failed to set up network: no addresses left
00:01.0 event Warning FailedCreatePodSandBox Failed to create pod sandbox: RunPodSandbox: failed to set up network: no addresses left
00:01.0 why   creating the sandbox failed; next attempt at 00:03.0
00:03.0 call  RunPodSandbox 0
00:03.0 why   starts container web: it has not run yet
00:03.0 cond  PodReadyToStartContainers True
00:03.0 call  CreateContainer web#0
00:03.0 call  StartContainer web#0
00:03.0 why   everything runs as specified
00:03.0 state Running: web Running
00:03.0 cond  Ready True
