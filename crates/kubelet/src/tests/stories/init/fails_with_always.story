An init container that fails restarts until it succeeds

pod web
  initContainers:
  - {name: config, image: "app:1"}
  containers:
  - {name: web, image: "app:1"}

first  container config: exits 1 after 1s; then exits 1 after 1s; then exits 0 after 1s
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
00:01.0 proc  config#0 exits 1 (Error)
00:01.0 why   starts container config: it exited with code 1
00:01.0 state Pending: config Error(1), web PodInitializing
00:01.0 call  CreateContainer config#1
00:01.0 call  StartContainer config#1
00:01.0 why   waits for init container config to exit
00:01.0 state Pending: config Running x1, web PodInitializing
00:02.0 proc  config#1 exits 1 (Error)
00:02.0 why   container config is in back-off until 00:12.0
00:02.0 why   removes a dead container
00:02.0 state Pending: config CrashLoopBackOff x1 after Error(1), web PodInitializing
00:02.0 event Warning BackOff config: Back-off restarting failed container config in pod web-n_default(UID)
00:02.0 call  RemoveContainer config#0
00:12.0 why   starts container config: it exited with code 1
00:12.0 call  CreateContainer config#2
00:12.0 call  StartContainer config#2
00:12.0 why   waits for init container config to exit
00:12.0 state Pending: config Running x2, web PodInitializing
00:13.0 proc  config#2 exits 0 (Completed)
00:13.0 why   starts container web: it has not run yet
00:13.0 why   removes a dead container
00:13.0 state Pending: config Completed(0) x2, web PodInitializing
00:13.0 cond  Initialized True
00:13.0 call  CreateContainer web#0
00:13.0 call  StartContainer web#0
00:13.0 call  RemoveContainer config#1
00:13.0 why   everything runs as specified
00:13.0 state Running: config Completed(0) x2, web Running
00:13.0 cond  Ready True
