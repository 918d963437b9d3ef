The image of a container that waits for init is edited: init continues, the new image is started

pod web
  initContainers:
  - {name: config, image: "app:1"}
  containers:
  - {name: web, image: "app:1"}

first  container config: exits 0 after 10s
at 5s  edit: {name: web, image: "app:1"} -> {name: web, image: "app:2"}
until 20s
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
00:05.0 then  edit: {name: web, image: "app:1"} -> {name: web, image: "app:2"}
00:10.0 proc  config#0 exits 0 (Completed)
00:10.0 why   starts container web: it has not run yet
00:10.0 state Pending: config Completed(0), web PodInitializing
00:10.0 cond  Initialized True
00:10.0 call  CreateContainer web#0
00:10.0 call  StartContainer web#0
00:10.0 why   everything runs as specified
00:10.0 state Running: config Completed(0), web Running
00:10.0 cond  Ready True
