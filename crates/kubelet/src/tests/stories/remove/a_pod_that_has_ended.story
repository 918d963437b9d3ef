A job that has completed is removed

pod job
  restartPolicy: Never
  containers:
  - {name: job, image: "app:1"}

first  container job: exits 0 after 2s
at 20s  manifest is removed
until 30s
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
00:02.0 proc  job#0 exits 0 (Completed)
00:02.0 why   all containers have exited and none will be restarted
00:02.0 state Succeeded: job Completed(0)
00:02.0 cond  Ready False, PodCompleted
00:02.0 call  StopPodSandbox 0
00:02.0 cond  PodReadyToStartContainers False
00:20.0 then  manifest is removed
00:20.0 why   no source defines the pod any more
00:20.0 state Succeeded, ends within 30 s: job Completed(0)
00:20.0 call  RemoveContainer job#0
00:20.0 call  RemovePodSandbox 0
00:20.0 gone  nothing is left of the pod
