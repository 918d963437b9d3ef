A container that exited by itself runs no preStop hook

pod web
  containers:
  - name: web
    image: app:1
    lifecycle: {preStop: {exec: {command: [drain]}}}

at 20s  container web exits 1
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
00:20.0 then  container web exits 1
00:20.0 proc  web#0 exits 1 (Error)
00:20.0 why   starts container web: it exited with code 1
00:20.0 state Running: web Error(1)
00:20.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:20.0 call  CreateContainer web#1
00:20.0 call  StartContainer web#1
00:20.0 why   everything runs as specified
00:20.0 state Running: web Running x1
00:20.0 cond  Ready True
