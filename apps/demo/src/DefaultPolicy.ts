/**
 * What the agent of the demo may do where no `--policy` says otherwise: read and change the project, run its tests and
 * look at its history. Other commands ask, and nothing outside of the folder is touched.
 */
import { type OptionsInvalid, Permissions } from "@waystone/policy"
import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import { Project } from "./Project.ts"

const outside = { outside: ["."] }
const said = "it lies outside of the project's folder"

/**
 * The folder confines the file tools anyway; here it is said where a person looks for it. Tests run unasked only by their own
 * tool, which is confined (`Sandbox`): the agent writes them. Git's reads are spelled out: many take options that write files
 * or run programs.
 */
export const policy: Permissions.Policy = {
  // The shell is the one tool that is OpenWorld: once it has brought anything into the Run, edits and tests ask, too.
  afterUntrusted: "ask",
  rules: [
    { name: "outside", action: "deny", when: { path: outside }, reason: said },
    { name: "outside", action: "deny", when: { "files.*.path": outside }, reason: said },
    {
      name: "git's own files",
      action: "deny",
      tools: ["write_file", "edit_file"],
      when: { path: { path: [".git", ".git/**", "**/.git/**"] } },
      reason: "git's own files can run programs"
    },
    { name: "edits", action: "allow", tools: ["write_file", "edit_file"], when: { path: { inside: ["."] } } },
    { name: "tests", action: "allow", tools: ["run_tests"] },
    { name: "workers", action: "allow", tools: ["delegate"] },
    {
      name: "git reads",
      action: "allow",
      tools: ["shell"],
      when: {
        command: {
          command: [
            "git status",
            "git status --short",
            "git diff",
            "git diff --stat",
            "git diff --cached",
            "git log",
            "git log --oneline",
            "git log -n *",
            "git log --oneline -n *",
            "git show",
            "git branch"
          ]
        }
      }
    },
    { name: "other commands", action: "ask", tools: ["shell"] }
  ]
}

/** Permissions for the Project that is provided, by a JSON file of the user's or by these rules. */
export const layer = (
  file: string | undefined
): Layer.Layer<Permissions.Permissions, OptionsInvalid.OptionsInvalid, Project | FileSystem.FileSystem | Path.Path> =>
  Layer.unwrap(
    Project.use(({ folder, source }) => {
      // Of a folder that is gone nothing can be looked up; its Run only comes to an end.
      const root = source._tag === "Gone" ? "." : folder
      return Effect.succeed(
        file === undefined ? Permissions.layer(policy, { root }) : Permissions.layerFile(file, { root })
      )
    })
  )
