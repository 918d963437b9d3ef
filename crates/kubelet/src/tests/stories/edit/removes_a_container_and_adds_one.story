An edit removes one container and adds another; the remaining one is left alone

pod shop
  containers:
  - {name: web, image: "app:1"}
  - {name: old, image: "app:1"}

at 20s  edit: name: old -> name: new
until 30s
---
00:00.0 state Pending: old ContainerCreating, web ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container web: it has not run yet
00:00.0 why   starts container old: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer web#0
00:00.0 call  StartContainer web#0
00:00.0 call  CreateContainer old#0
00:00.0 call  StartContainer old#0
00:00.0 why   everything runs as specified
00:00.0 state Running: old Running, web Running
00:00.0 cond  Ready True
00:20.0 then  edit: name: old -> name: new
00:20.0 why   stops container old: the pod no longer has a container of this name
00:20.0 why   starts container new: it has not run yet
00:20.0 state Pending: new ContainerCreating, web Running
00:20.0 cond  Ready False, ContainersNotReady: containers with unready status: [new]
00:20.0 event Normal Killing old: Stopping container old
00:20.0 call  StopContainer old#0, grace 30 s
00:20.0 proc  old#0 gets SIGTERM
00:20.0 proc  old#0 exits 143 (Error)
00:20.0 call  CreateContainer new#0
00:20.0 call  StartContainer new#0
00:20.0 why   removes a dead container
00:20.0 state Running: new Running, web Running
00:20.0 cond  Ready True
00:20.0 call  RemoveContainer old#0
00:20.0 why   everything runs as specified
