After a reboot the pod starts from its init containers

pod web
  initContainers:
  - {name: config, image: "app:1"}
  containers:
  - {name: web, image: "app:1"}

first  container config: exits 0 after 2s
at 20s  reboot
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
00:20.0 then  reboot
00:20.0 proc  web#0 exits 255 (Unknown)
00:20.0 why   sandbox 0 is not ready
00:20.0 state Running: config Completed(0), web Unknown(255)
00:20.0 cond  PodReadyToStartContainers False
00:20.0 cond  Ready False, ContainersNotReady: containers with unready status: [web]
00:20.0 call  StopPodSandbox 0
00:20.0 event Normal SandboxChanged Pod sandbox changed, it will be killed and re-created.
00:20.0 call  RunPodSandbox 1
00:20.0 why   starts container config: its sandbox was replaced
00:20.0 cond  PodReadyToStartContainers True
00:20.0 call  CreateContainer config#1
00:20.0 call  StartContainer config#1
00:20.0 why   waits for init container config to exit
00:20.0 state Pending: config Running x1, web Unknown(255)
00:22.0 proc  config#1 exits 0 (Completed)
00:22.0 why   starts container web: its sandbox was replaced
00:22.0 why   removes a dead container
00:22.0 state Running: config Completed(0) x1, web Unknown(255)
00:22.0 call  CreateContainer web#1
00:22.0 call  StartContainer web#1
00:22.0 call  RemoveContainer config#0
00:22.0 why   everything runs as specified
00:22.0 state Running: config Completed(0) x1, web Running x1
00:22.0 cond  Ready True
