A job runs longer than its activeDeadlineSeconds

pod job
  restartPolicy: OnFailure
  activeDeadlineSeconds: 30
  terminationGracePeriodSeconds: 5
  containers:
  - {name: job, image: "app:1"}

first  container job: runs, ignores SIGTERM
until 50s
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
00:30.0 why   the pod was active longer than its deadline
00:30.0 why   stops container job: the pod was active longer than its deadline
00:30.0 event Normal Killing job: Stopping container job
00:30.0 call  StopContainer job#0, grace 5 s
00:30.0 proc  job#0 gets SIGTERM
00:35.0 proc  job#0 exits 137 (Error)
00:35.0 call  StopPodSandbox 0
00:35.0 state Failed (DeadlineExceeded): job Error(137)
00:35.0 cond  PodReadyToStartContainers False
00:35.0 cond  Ready False, PodFailed
00:35.0 event Normal DeadlineExceeded Pod was active on the node longer than the specified deadline
