With restartPolicy OnFailure an init container that fails restarts as well

pod job
  restartPolicy: OnFailure
  initContainers:
  - {name: config, image: "app:1"}
  containers:
  - {name: job, image: "app:1"}

first  container config: exits 2 after 1s; then exits 0 after 1s
first  container job: exits 0 after 4s
until 15s
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
00:01.0 proc  config#0 exits 2 (Error)
00:01.0 why   starts container config: it exited with code 2
00:01.0 state Pending: config Error(2), job PodInitializing
00:01.0 call  CreateContainer config#1
00:01.0 call  StartContainer config#1
00:01.0 why   waits for init container config to exit
00:01.0 state Pending: config Running x1, job PodInitializing
00:02.0 proc  config#1 exits 0 (Completed)
00:02.0 why   starts container job: it has not run yet
00:02.0 why   removes a dead container
00:02.0 state Pending: config Completed(0) x1, job PodInitializing
00:02.0 cond  Initialized True
00:02.0 call  CreateContainer job#0
00:02.0 call  StartContainer job#0
00:02.0 call  RemoveContainer config#0
00:02.0 why   everything runs as specified
00:02.0 state Running: config Completed(0) x1, job Running
00:02.0 cond  Ready True
00:06.0 proc  job#0 exits 0 (Completed)
00:06.0 why   all containers have exited and none will be restarted
00:06.0 state Succeeded: config Completed(0) x1, job Completed(0)
00:06.0 cond  Initialized True, PodCompleted
00:06.0 cond  Ready False, PodCompleted
00:06.0 call  StopPodSandbox 0
00:06.0 cond  PodReadyToStartContainers False
