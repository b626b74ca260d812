"""A text of each language, and the definitions that are in it."""

from __future__ import annotations

SAMPLES = {
    "python": (
        "import a\nLIMIT = 2\n@cached\ndef f(x):\n    y = 1\n    def inner(): pass\n"
        "class A(B):\n    field: int = 1\n    MOST = 3\n    @property\n    def m(self):\n"
        "        return 1\nif X:\n    async def h(): pass\n",
        "LIMIT:value:1-2 f:function:2-6 A:type:6-12 MOST:value:8-9 m:method:9-12 h:function:13-14",
    ),
    "typescript": (
        "export const x = 1, f = (a) => a;\nexport default class A<T> {\n  p = 1;\n  m(): void {}\n"
        "}\ninterface I {\n  q(): void;\n}\ntype T = string;\nenum E { A }\n"
        "namespace N {\n  export function h() {}\n}\nconst { skipped } = x;\n",
        "x:value:0-1 f:function:0-1 A:type:1-5 m:method:3-4 I:type:5-8 q:method:6-7 T:type:8-9 "
        "E:type:9-10 h:function:11-12",
    ),
    "typescriptreact": ("export function App() {\n  return <p>{x}</p>;\n}\n", "App:function:0-3"),
    "javascript": (
        "module.exports.f = function () {};\nclass A {\n  #p = 1;\n  m() {}\n}\n"
        "function* gen() {}\nvar o = 1;\n",
        "f:function:0-1 A:type:1-5 m:method:3-4 gen:function:5-6 o:value:6-7",
    ),
    "javascriptreact": ("const App = () => <p/>;\n", "App:function:0-1"),
    "go": (
        "package a\nconst (\n\tD = 2\n)\nvar v int\ntype S struct {\n\tx int\n}\n"
        "type I interface {\n\tM()\n}\nfunc f() {}\nfunc (s *S) m() {}\n",
        "D:value:2-3 v:value:4-5 S:type:5-8 I:type:8-11 M:method:9-10 f:function:11-12 "
        "m:function:12-13",
    ),
    "rust": (
        "mod m { pub fn q() {} }\npub struct S<T> { x: T }\nenum E { A }\n"
        "pub trait T {\n    fn m(&self);\n}\nimpl T for S {\n    fn k(&self) {}\n}\n"
        "const C: u8 = 1;\nstatic D: u8 = 1;\ntype X = u8;\nmacro_rules! mac { () => {} }\n",
        "q:function:0-1 S:type:1-2 E:type:2-3 T:type:3-6 m:method:4-5 k:function:7-8 C:value:9-10 "
        "D:value:10-11 X:type:11-12 mac:function:12-13",
    ),
    "java": (
        "package a.b;\n@Ann\npublic class A<T> {\n  private int f = 1;\n  A() {}\n"
        "  @Override\n  public int g(int x) { return x; }\n  enum E { P, Q }\n}\n"
        "record R(int a) {}\ninterface I { void m(); }\n",
        "A:type:1-9 A:method:4-5 g:method:5-7 E:type:7-8 R:type:9-10 I:type:10-11 m:method:10-11",
    ),
    "c": (
        "#ifndef A_H\n#define A_H 1\n#define M(x) (x)\ntypedef struct P { int x; } P;\n"
        "struct Q { int y; };\nenum E { X, Y };\nint f(int x);\nstatic char *g(int a)\n{\n"
        "  return 0;\n}\nvoid h(struct Q *q);\n#endif\n",
        "A_H:value:1-2 M:function:2-3 P:type:3-4 Q:type:4-5 E:type:5-6 f:function:6-7 "
        "g:function:7-11 h:function:11-12",
    ),
    "cpp": (
        "namespace n {\ntemplate <typename T>\nclass A : B {\n public:\n  int f(int x) const {\n"
        "    return x;\n  }\n  void proto();\n  int member_;\n};\nusing U = int;\n}\n"
        "int n::A::proto() { return 1; }\nenum class E { X };\n",
        "A:type:1-10 f:method:4-7 proto:method:7-8 U:type:10-11 proto:function:12-13 E:type:13-14",
    ),
    "csharp": (
        "namespace N.M {\n  public class A : B {\n    public int Price { get; set; }\n"
        "    public A() {}\n    public int F(int x) { return 1; }\n  }\n"
        "  interface I { void M(); }\n  record R(int X);\n  delegate void D();\n}\n",
        "A:type:1-6 A:method:3-4 F:method:4-5 I:type:6-7 M:method:6-7 R:type:7-8 D:function:8-9",
    ),
    "ruby": (
        "module M\n  class A < B\n    X = 1\n    def f(x)\n      1\n    end\n"
        "    def self.g?; end\n  end\nend\n",
        "M:type:0-9 A:type:1-8 X:value:2-3 f:method:3-6 g?:method:6-7",
    ),
    "php": (
        "<?php\nnamespace A\\B;\ninterface I { function m(); }\ntrait T {}\n"
        "abstract class A {\n  const X = 1;\n  private $p;\n  public function f($x) {\n"
        "    return 1;\n  }\n}\nfunction g() {}\nconst Y = 2;\n",
        "I:type:2-3 m:method:2-3 T:type:3-4 A:type:4-11 X:value:5-6 f:method:7-10 g:function:11-12 "
        "Y:value:12-13",
    ),
    "lua": (
        "local M = {}\nfunction M.f(x)\n  return 1\nend\nfunction M:g() end\n"
        "local function h() end\nM.k = function(a) end\nreturn M\n",
        "M:value:0-1 f:function:1-4 g:function:4-5 h:function:5-6 k:function:6-7",
    ),
    "shellscript": (
        "X=1\nexport Y=2\nf() {\n  echo\n}\nfunction g { :; }\n",
        "X:value:0-1 Y:value:1-2 f:function:2-5 g:function:5-6",
    ),
    "kotlin": (
        "package a\nconst val X = 1\ndata class A(val x: Int) : B() {\n  val p = 1\n"
        "  fun f(x: Int): Int = 1\n  companion object {\n    fun g() {}\n  }\n}\nobject O {\n}\n"
        "interface I {\n  fun m()\n}\nfun <T> List<T>.ext() {\n}\n",
        "X:value:1-2 A:type:2-9 f:method:4-5 g:method:6-7 O:type:9-11 I:type:11-14 m:method:12-13 "
        "ext:function:14-16",
    ),
    "css": (
        ".card, #top .item {\n  color: red;\n}\n@keyframes spin {\n  from {}\n}\n"
        "@media print {\n  .paper-sheet { }\n}\n",
        "card:value:0-3 top:value:0-3 item:value:0-3 spin:value:3-6 paper-sheet:value:7-8",
    ),
    "html": ("<body>\n<div id='x'>\n<p id=z>t</p>\n", "x:value:1-2 z:value:2-3"),
    "json": ('{"a": {"b": 1},\n "c": [1]}\n', "a:value:0-1 c:value:1-2"),
    "jsonc": ('// said\n{"a": 1}\n', "a:value:1-2"),
}
