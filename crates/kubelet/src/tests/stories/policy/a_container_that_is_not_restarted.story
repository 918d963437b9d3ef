One container of a pod is not restarted: the others keep running, and so does the pod

pod web
  containers:
  - {name: web, image: "app:1"}
  - {name: warmup, image: "app:1", restartPolicy: Never}

first  container warmup: exits 1 after 5s
until 20s
---
00:00.0 state Pending: warmup ContainerCreating, web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 why   starts container warmup: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 call  CreateContainer warmup#0
00:00.0 call  StartContainer warmup#0
00:00.0 why   everything runs as specified
00:00.0 state Running: warmup Running, web Running
00:00.0 cond  Ready True
00:05.0 proc  warmup#0 exits 1 (Error)
00:05.0 state Running: warmup Error(1), web Running
00:05.0 cond  Ready False, ContainersNotReady: containers with unready status: [warmup]
