An edit of a label restarts nothing

pod web {labels: {tier: front}}
  containers:
  - {name: web, image: "app:1"}

pod web as relabelled later {labels: {tier: back}}
  containers:
  - {name: web, image: "app:1"}

at 20s  manifest of relabelled is put
until 40s
---
00:00.0 state [web] Pending: web ContainerCreating
00:00.0 why   [web] the pod has no sandbox
00:00.0 call  [web] RunPodSandbox 0
00:00.0 why   [web] starts container web: it has not run yet
00:00.0 cond  [web] PodReadyToStartContainers True
00:00.0 call  [web] CreateContainer web#0
00:00.0 call  [web] StartContainer web#0
00:00.0 why   [web] everything runs as specified
00:00.0 state [web] Running: web Running
00:00.0 cond  [web] Ready True
00:20.0 then  manifest of relabelled is put
