A deadline passes while no agent runs: the next agent ends the pod

pod job
  restartPolicy: OnFailure
  activeDeadlineSeconds: 30
  containers:
  - {name: job, image: "app:1"}

at 10s  agent dies
at 60s  agent starts
until 80s
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
00:10.0 then  agent dies
01:00.0 then  agent starts
01:00.0 why   the pod was active longer than its deadline
01:00.0 why   stops container job: the pod was active longer than its deadline
01:00.0 event Normal Killing job: Stopping container job
01:00.0 call  StopContainer job#0, grace 30 s
01:00.0 proc  job#0 gets SIGTERM
01:00.0 proc  job#0 exits 143 (Error)
01:00.0 call  StopPodSandbox 0
01:00.0 state Failed (DeadlineExceeded): job Error(143)
01:00.0 cond  PodReadyToStartContainers False
01:00.0 cond  Ready False, PodFailed
01:00.0 event Normal DeadlineExceeded Pod was active on the node longer than the specified deadline
