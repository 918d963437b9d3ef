An init container is edited after it has completed

pod web
  initContainers:
  - {name: config, image: "app:1"}
  containers:
  - {name: web, image: "app:1"}

first  container config: exits 0 after 2s
at 10s  edit: {name: config, image: "app:1"} -> {name: config, image: "app:2"}
until 30s
---
00:00.0 state Pending: config PodInitializing, web PodInitializing
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container config: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer config#0
00:00.0 call  StartContainer config#0
00:00.0 why   waits for init container config to exit
00:00.0 state Pending: config Running, web PodInitializing
00:02.0 proc  config#0 exits 0 (Completed)
00:02.0 why   starts container web: it has not run yet
00:02.0 state Pending: config Completed(0), web PodInitializing
00:02.0 cond  Initialized True
00:02.0 call  CreateContainer web#0
00:02.0 call  StartContainer web#0
00:02.0 why   everything runs as specified
00:02.0 state Running: config Completed(0), web Running
00:02.0 cond  Ready True
00:10.0 then  edit: {name: config, image: "app:1"} -> {name: config, image: "app:2"}
00:10.0 why   the definition of sandbox 0 has changed
00:10.0 why   stops container web: the pod's sandbox is replaced
00:10.0 cond  PodReadyToStartContainers False
00:10.0 event Normal Killing web: Stopping container web
00:10.0 call  StopContainer web#0, grace 30 s
00:10.0 proc  web#0 gets SIGTERM
00:10.0 proc  web#0 exits 143 (Error)
00:10.0 call  StopPodSandbox 0
00:10.0 event Normal SandboxChanged Pod sandbox changed, it will be killed and re-created.
00:10.0 call  RunPodSandbox 1
00:10.0 why   starts container config: its definition changed
00:10.0 state Running: config Completed(0), web Error(143)
00:10.0 cond  PodReadyToStartContainers True
00:10.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:10.0 call  CreateContainer config#1
00:10.0 call  StartContainer config#1
00:10.0 why   waits for init container config to exit
00:10.0 state Pending: config Running x1, web Error(143)
00:12.0 proc  config#1 exits 0 (Completed)
00:12.0 why   starts container web: its sandbox was replaced
00:12.0 why   removes a dead container
00:12.0 state Running: config Completed(0) x1, web Error(143)
00:12.0 call  CreateContainer web#1
00:12.0 call  StartContainer web#1
00:12.0 call  RemoveContainer config#0
00:12.0 why   everything runs as specified
00:12.0 state Running: config Completed(0) x1, web Running x1
00:12.0 cond  Ready True
