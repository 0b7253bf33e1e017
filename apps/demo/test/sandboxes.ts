/**
 * Whether bubblewrap can make a sandbox here, as `Sandbox` tries it.
 */
import { execFileSync } from "node:child_process"

export const sandboxes = (() => {
  try {
    const flags = "--unshare-pid --unshare-net --cap-drop ALL --ro-bind / / --dev /dev --proc /proc -- true"
    execFileSync("bwrap", flags.split(" "), { stdio: "ignore" })
    return true
  } catch {
    return false
  }
})()
