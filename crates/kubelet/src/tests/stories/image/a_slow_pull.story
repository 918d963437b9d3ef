A slow pull of one image does not hold up the other pod

pod big
  containers:
  - {name: big, image: "big:1"}

pod web
  containers:
  - {name: web, image: "app:1"}

first  pull of big:1 takes 5m
until 6m
---
00:00.0 state [big] Pending: big ContainerCreating
00:00.0 why   [big] the pod has no sandbox
00:00.0 call  [big] RunPodSandbox 0
00:00.0 why   [big] starts container big: it has not run yet
00:00.0 cond  [big] PodReadyToStartContainers True
00:00.0 call  [big] PullImage big:1
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
05:00.0 event [big] Normal Pulled big: Successfully pulled image "big:1" in 5m0s (5m0s including waiting). Image size: 1048576 bytes.
05:00.0 call  [big] CreateContainer big#0
05:00.0 call  [big] StartContainer big#0
05:00.0 why   [big] everything runs as specified
05:00.0 state [big] Running: big Running
05:00.0 cond  [big] Ready True
