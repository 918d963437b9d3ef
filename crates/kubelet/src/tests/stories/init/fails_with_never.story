An init container fails in a pod that is not restarted: the pod has failed

pod job
  restartPolicy: Never
  initContainers:
  - {name: config, image: "app:1"}
  containers:
  - {name: job, image: "app:1"}

first  container config: exits 1 after 2s
until 10s
---
00:00.0 state Pending: config PodInitializing, job PodInitializing
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container config: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer config#0
00:00.0 call  StartContainer config#0
00:00.0 why   waits for init container config to exit
00:00.0 state Pending: config Running, job PodInitializing
00:02.0 proc  config#0 exits 1 (Error)
00:02.0 why   init container config failed and may not be restarted
00:02.0 state Failed: config Error(1), job PodInitializing
00:02.0 cond  Ready False, PodFailed
00:02.0 call  StopPodSandbox 0
00:02.0 cond  PodReadyToStartContainers False
