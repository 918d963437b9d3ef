After a reboot a job that is not restarted has failed, and one that had completed is unchanged

pod lost
  restartPolicy: Never
  containers:
  - {name: lost, image: "app:1"}

pod done
  restartPolicy: Never
  containers:
  - {name: done, image: "app:1"}

first  container done: exits 0 after 5s
at 20s  reboot
until 30s
---
00:00.0 state [lost] Pending: lost ContainerCreating
00:00.0 why   [lost] the pod has no sandbox
00:00.0 call  [lost] RunPodSandbox 0
00:00.0 why   [lost] starts container lost: it has not run yet
00:00.0 cond  [lost] PodReadyToStartContainers True
00:00.0 call  [lost] CreateContainer lost#0
00:00.0 call  [lost] StartContainer lost#0
00:00.0 why   [lost] everything runs as specified
00:00.0 state [lost] Running: lost Running
00:00.0 cond  [lost] Ready True
00:00.0 state [done] Pending: done ContainerCreating
00:00.0 why   [done] the pod has no sandbox
00:00.0 call  [done] RunPodSandbox 0
00:00.0 why   [done] starts container done: it has not run yet
00:00.0 cond  [done] PodReadyToStartContainers True
00:00.0 call  [done] CreateContainer done#0
00:00.0 call  [done] StartContainer done#0
00:00.0 why   [done] everything runs as specified
00:00.0 state [done] Running: done Running
00:00.0 cond  [done] Ready True
00:05.0 proc  [done] done#0 exits 0 (Completed)
00:05.0 why   [done] all containers have exited and none will be restarted
00:05.0 state [done] Succeeded: done Completed(0)
00:05.0 cond  [done] Ready False, PodCompleted
00:05.0 call  [done] StopPodSandbox 0
00:05.0 cond  [done] PodReadyToStartContainers False
00:20.0 then  reboot
00:20.0 proc  [lost] lost#0 exits 255 (Unknown)
00:20.0 why   [lost] all containers have exited and none will be restarted
00:20.0 state [lost] Failed: lost Unknown(255)
00:20.0 cond  [lost] PodReadyToStartContainers False
00:20.0 cond  [lost] Ready False, PodFailed
