The deadline of a job passes before its image is pulled

pod job
  restartPolicy: OnFailure
  activeDeadlineSeconds: 30
  containers:
  - {name: job, image: "app:3"}

first  pull of app:3 hangs
until 50s
---
00:00.0 state Pending: job ContainerCreating
00:00.0 why   the pod has no sandbox
00:00.0 call  RunPodSandbox 0
00:00.0 why   starts container job: it has not run yet
00:00.0 cond  PodReadyToStartContainers True
00:00.0 call  PullImage app:3
00:30.0 why   the pod was active longer than its deadline
00:30.0 state Failed (DeadlineExceeded): job ContainerCreating
00:30.0 cond  Ready False, PodFailed
00:30.0 event Normal DeadlineExceeded Pod was active on the node longer than the specified deadline
00:30.0 call  StopPodSandbox 0
00:30.0 state Failed (DeadlineExceeded): job ContainerStatusUnknown(137)
00:30.0 cond  PodReadyToStartContainers False
