An init container that may not restart, in a pod that may: its failure fails the pod

pod web
  initContainers:
  - {name: config, image: "app:1", restartPolicy: Never}
  containers:
  - {name: web, image: "app:1"}

first  container config: exits 1 after 1s
until 10s
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
00:01.0 why   init container config failed and may not be restarted
00:01.0 state Failed: config Error(1), web PodInitializing
00:01.0 cond  Ready False, PodFailed
00:01.0 call  StopPodSandbox 0
00:01.0 cond  PodReadyToStartContainers False
