A debug container is added to a running pod; when it exits, it is not restarted

pod web
  containers:
  - {name: web, image: "app:1"}

first  container debug: exits 0 after 10s
at 20s  operator adds: {"name": "debug", "image": "app:2", "targetContainerName": "web"}
at 40s  agent dies and starts
until 60s
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
00:20.0 then  operator adds: {"name": "debug", "image": "app:2", "targetContainerName": "web"}
00:20.0 why   starts container debug: it has not run yet
00:20.0 state Running: web Running, debug ContainerCreating
00:20.0 call  CreateContainer debug#0
00:20.0 call  StartContainer debug#0
00:20.0 why   everything runs as specified
00:20.0 state Running: web Running, debug Running
00:30.0 proc  debug#0 exits 0 (Completed)
00:30.0 state Running: web Running, debug Completed(0)
00:40.0 then  agent dies and starts
00:40.0 why   everything runs as specified
