The registry hangs; the pod is removed

pod web
  containers:
  - {name: web, image: "app:3"}

first  pull of app:3 hangs
at 30s  manifest is removed
until 40s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  PullImage app:3
00:30.0 then  manifest is removed
00:30.0 why   no source defines the pod any more
00:30.0 state Pending, ends within 30 s: web ContainerCreating
00:30.0 call  StopPodSandbox 0
00:30.0 cond  PodReadyToStartContainers False
00:30.0 call  RemovePodSandbox 0
00:30.0 gone  nothing is left of the pod
