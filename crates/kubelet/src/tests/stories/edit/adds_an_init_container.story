An edit adds an init container: the pod restarts in a new sandbox

pod web
  terminationGracePeriodSeconds: 5
  containers:
  - {name: web, image: "app:1"}

first  container config: exits 0 after 1s
at 20s  edit: terminationGracePeriodSeconds: 5 -> initContainers: [{name: config, image: "app:1"}]
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
00:20.0 then  edit: terminationGracePeriodSeconds: 5 -> initContainers: [{name: config, image: "app:1"}]
00:20.0 why   the definition of sandbox 0 has changed
00:20.0 why   stops container web: the pod's sandbox is replaced
00:20.0 state Running: config Completed(0), web Running
00:20.0 cond  PodReadyToStartContainers False
00:20.0 event Normal Killing web: Stopping container web
00:20.0 call  StopContainer web#0, grace 5 s
00:20.0 proc  web#0 gets SIGTERM
00:20.0 proc  web#0 exits 143 (Error)
00:20.0 call  StopPodSandbox 0
00:20.0 event Normal SandboxChanged Pod sandbox changed, it will be killed and re-created.
00:20.0 call  RunPodSandbox 1
00:20.0 why   starts container config: it has not run yet
00:20.0 state Running: config Completed(0), web Error(143)
00:20.0 cond  PodReadyToStartContainers True
00:20.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:20.0 call  CreateContainer config#0
00:20.0 call  StartContainer config#0
00:20.0 why   waits for init container config to exit
00:20.0 state Pending: config Running, web Error(143)
00:21.0 proc  config#0 exits 0 (Completed)
00:21.0 why   starts container web: its sandbox was replaced
00:21.0 state Running: config Completed(0), web Error(143)
00:21.0 call  CreateContainer web#1
00:21.0 call  StartContainer web#1
00:21.0 why   everything runs as specified
00:21.0 state Running: config Completed(0), web Running x1
00:21.0 cond  Ready True
