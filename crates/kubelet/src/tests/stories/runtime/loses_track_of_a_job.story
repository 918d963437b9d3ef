The runtime does not know how a job exited that may not run twice

pod job
  restartPolicy: Never
  containers:
  - {name: job, image: "app:1"}

at 20s  runtime loses track of job
until 100s
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
00:20.0 then  runtime loses track of job
01:06.6 why   stops container job: the pod terminates
01:06.6 state Failed: job ContainerStatusUnknown(137)
01:06.6 cond  Ready False, PodFailed
01:06.6 event Normal Killing job: Stopping container job
01:06.6 call  StopContainer job#0, grace 30 s
01:06.6 proc  job#0 gets SIGTERM
01:06.6 proc  job#0 exits 143 (Error)
01:06.6 call  StopPodSandbox 0
01:06.6 cond  PodReadyToStartContainers False
01:06.6 event Normal Killing job: Stopping container job
01:06.6 call  StopContainer job#0, grace 30 s
01:07.6 event Normal Killing job: Stopping container job
01:07.6 call  StopContainer job#0, grace 30 s
01:09.6 event Normal Killing job: Stopping container job
01:09.6 call  StopContainer job#0, grace 30 s
01:13.6 event Normal Killing job: Stopping container job
01:13.6 call  StopContainer job#0, grace 30 s
01:21.6 event Normal Killing job: Stopping container job
01:21.6 call  StopContainer job#0, grace 30 s
01:31.6 event Normal Killing job: Stopping container job
01:31.6 call  StopContainer job#0, grace 30 s
