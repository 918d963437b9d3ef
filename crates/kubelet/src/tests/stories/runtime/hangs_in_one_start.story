The runtime hangs in the start of one container: only its pod waits

pod stuck
  containers:
  - {name: stuck, image: "app:1"}

pod web
  containers:
  - {name: web, image: "app:1"}

first  runtime hangs in StartContainer of stuck
at 20s  container web exits 1
at 3m  runtime goes on
until 4m
---
00:00.0 state [stuck] Pending: stuck ContainerCreating
00:00.0 why   [stuck] the pod has no sandbox
00:00.0 call  [stuck] RunPodSandbox 0
00:00.0 why   [stuck] starts container stuck: it has not run yet
00:00.0 cond  [stuck] PodReadyToStartContainers True
00:00.0 call  [stuck] CreateContainer stuck#0
00:00.0 call  [stuck] StartContainer stuck#0
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
00:20.0 then  container web exits 1
00:20.0 proc  [web] web#0 exits 1 (Error)
00:20.0 why   [web] starts container web: it exited with code 1
00:20.0 state [web] Running: web Error(1)
00:20.0 cond  [web] Ready False, ContainersNotReady: containers with unready status: [web]
00:20.0 call  [web] CreateContainer web#1
00:20.0 call  [web] StartContainer web#1
00:20.0 why   [web] everything runs as specified
00:20.0 state [web] Running: web Running x1
00:20.0 cond  [web] Ready True
02:00.0 call  [stuck] StartContainer stuck#0 failed: StartContainer: no answer within 2m0s
02:00.0 event [stuck] Warning Failed stuck: Error: StartContainer: no answer within 2m0s
02:00.0 why   [stuck] container stuck is in back-off until 02:01.0
02:00.0 state [stuck] Pending: stuck RunContainerError
02:01.0 why   [stuck] starts container stuck: stuck#0 was created but not started
02:01.0 call  [stuck] StartContainer stuck#0
03:00.0 then  runtime goes on
03:00.0 call  [stuck] StartContainer stuck#0 took 58.9 s
03:00.0 why   [stuck] everything runs as specified
03:00.0 state [stuck] Running: stuck Running
03:00.0 cond  [stuck] Ready True
