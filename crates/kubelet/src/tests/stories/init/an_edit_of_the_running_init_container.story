An init container is edited while it runs

pod web
  initContainers:
  - {name: config, image: "app:1"}
  containers:
  - {name: web, image: "app:1"}

first  container config: exits 0 after 10s
at 5s  edit: {name: config, image: "app:1"} -> {name: config, image: "app:2"}
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
00:05.0 then  edit: {name: config, image: "app:1"} -> {name: config, image: "app:2"}
00:05.0 why   the definition of sandbox 0 has changed
00:05.0 why   stops container config: the pod's sandbox is replaced
00:05.0 cond  PodReadyToStartContainers False
00:05.0 event Normal Killing config: Stopping container config
00:05.0 call  StopContainer config#0, grace 30 s
00:05.0 proc  config#0 gets SIGTERM
00:05.0 proc  config#0 exits 143 (Error)
00:05.0 call  StopPodSandbox 0
00:05.0 event Normal SandboxChanged Pod sandbox changed, it will be killed and re-created.
00:05.0 call  RunPodSandbox 1
00:05.0 why   starts container config: its definition changed
00:05.0 state Pending: config Error(143), web PodInitializing
00:05.0 cond  PodReadyToStartContainers True
00:05.0 call  CreateContainer config#1
00:05.0 call  StartContainer config#1
00:05.0 why   waits for init container config to exit
00:05.0 state Pending: config Running x1, web PodInitializing
00:15.0 proc  config#1 exits 0 (Completed)
00:15.0 why   starts container web: it has not run yet
00:15.0 why   removes a dead container
00:15.0 state Pending: config Completed(0) x1, web PodInitializing
00:15.0 cond  Initialized True
00:15.0 call  CreateContainer web#0
00:15.0 call  StartContainer web#0
00:15.0 call  RemoveContainer config#0
00:15.0 call  RemovePodSandbox 0
00:15.0 why   everything runs as specified
00:15.0 state Running: config Completed(0) x1, web Running
00:15.0 cond  Ready True
