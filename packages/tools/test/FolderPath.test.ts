import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { isInside } from "../src/Held.ts"
import * as FolderPath from "../src/FolderPath.ts"

const posix: FolderPath.Place = { roots: ["/work/root", "/link"], windows: false }
const windows: FolderPath.Place = { roots: ["C:\\work\\root"], windows: true }

const parsed = (path: string, place: FolderPath.Place) =>
  Result.match(FolderPath.parse(path, place), { onFailure: () => "refused", onSuccess: (parts) => parts.join("/") })

describe("FolderPath", () => {
  it.each([
    ["a/b", "a/b"],
    ["./a//b/", "a/b"],
    ["a\\b", "a/b"],
    ["a/../b", "b"],
    ["a/b/../..", ""],
    [".", ""],
    ["...", "..."],
    ["a:b", "a:b"],
    ["/work/root/a", "a"],
    ["/work/root", ""],
    ["/work/./root/x/../a", "a"],
    ["/link/a", "a"],
    ["/work/root-evil/a", "refused"],
    ["/work", "refused"],
    ["/work/root/../a", "refused"],
    ["/work/root/../root/a", "refused"],
    ["/work/ROOT/a", "refused"],
    ["/", "refused"],
    ["..", "refused"],
    ["a/../../root/a", "refused"],
    ["a\\..\\..\\b", "refused"],
    ["C:\\work\\root\\a", "refused"],
    ["c:/a", "refused"],
    ["\\\\server\\share", "refused"],
    ["//work/root/a", "refused"],
    ["", "refused"],
    ["\t", "refused"],
    ["a\0", "refused"],
    ["x\ud800.txt", "refused"],
    ["a/\udfff/x", "refused"],
    ["😀", "😀"],
    ["a/".repeat(FolderPath.maxDepth), "a/".repeat(FolderPath.maxDepth).slice(0, -1)],
    ["a/".repeat(FolderPath.maxDepth + 1), "refused"],
    ["a".repeat(FolderPath.maxLength + 1), "refused"]
  ])("P1 on POSIX %j is %j", (path, expected) => {
    expect(parsed(path, posix)).toBe(expected)
  })

  it.each([
    ["a\\b", "a/b"],
    ["C:\\work\\root\\a", "a"],
    ["c:/WORK/root/a", "a"],
    ["C:\\work\\root-evil\\a", "refused"],
    ["C:\\work\\root\\..\\a", "refused"],
    ["D:\\work\\root\\a", "refused"],
    ["C:a", "refused"],
    ["C:", "refused"],
    ["\\work\\root\\a", "refused"],
    ["\\\\server\\share\\a", "refused"],
    ["\\\\?\\C:\\work\\root\\a", "refused"],
    ["a.txt:stream", "refused"],
    ["a./b", "refused"],
    ["a /b", "refused"]
  ])("P1 on Windows %j is %j", (path, expected) => {
    expect(parsed(path, windows)).toBe(expected)
  })

  it("H1 a folder whose name begins alike is not inside", () => {
    expect(["/r", "/r/a", "/"].map((path) => isInside("/r", path))).toEqual([true, true, false])
    expect(isInside("/r", "/r-evil")).toBe(false)
    expect(isInside("/", "/a")).toBe(true)
  })
})
