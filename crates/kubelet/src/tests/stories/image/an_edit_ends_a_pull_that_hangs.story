The registry hangs; the manifest is edited to an image that is present

pod web
  containers:
  - {name: web, image: "app:3"}

first  pull of app:3 hangs
at 30s  edit: app:3 -> app:2
until 40s
---
00:00.0 state Pending: web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  PullImage app:3
00:30.0 then  edit: app:3 -> app:2
00:30.0 call  CreateContainer web#0
00:30.0 call  StartContainer web#0
00:30.0 why   everything runs as specified
00:30.0 state Running: web Running
00:30.0 cond  Ready True
