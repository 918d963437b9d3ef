With restartPolicy Never a job that fails has failed, also for the next agent

pod job
  restartPolicy: Never
  containers:
  - {name: job, image: "app:1"}

first  container job: exits 3 after 2s
at 10s  agent dies and starts
until 60s
---
00:00.0 state Pending: job ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container job: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  CreateContainer job#0
00:00.0 call  StartContainer job#0
00:00.0 why   everything runs as specified
00:00.0 state Running: job Running
00:00.0 cond  Ready True
00:02.0 proc  job#0 exits 3 (Error)
00:02.0 why   all containers have exited and none will be restarted
00:02.0 state Failed: job Error(3)
00:02.0 cond  Ready False, PodFailed
00:02.0 call  StopPodSandbox 0
00:02.0 cond  PodReadyToStartContainers False
00:10.0 then  agent dies and starts
