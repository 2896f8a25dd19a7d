"""The site's own words in each of its languages; what judge and people wrote stays as it is."""

from __future__ import annotations

from markupsafe import Markup, escape

LANGUAGES = {"en": "English", "zh": "中文"}
"""Languages by the code that names their folder."""

HTML_LANG = {"en": "en", "zh": "zh-Hans"}

_WORDS: dict[str, tuple[str, str]] = {
    "title": ("Leaderboard", "排行榜"),
    "site": ("Gated DeltaNet prefill lab", "Gated DeltaNet prefill 实验"),
    "gap": (" ", ""),
    "skip": ("Skip to content", "跳到正文"),
    "language": ("Language", "语言"),
    "boards": ("Boards", "榜单"),
    "board": ("Board {n} of {total}", "第 {n} 个榜单，共 {total} 个"),
    "board_link": ("Board {n}", "榜单 {n}"),
    "back": ("Back to the board", "回到榜单"),
    "ranked_by": ("Ranked by {by}.", "按 {by} 排名。"),
    "latest": ("Each participant's latest attempt counts.", "每人取最近一次尝试。"),
    "best": ("Each participant's best attempt counts.", "每人取最好的一次尝试。"),
    "separate": (
        "Boards are graded under different conditions: never compare ranks or scores.",
        "各榜单的评测条件不同，名次和得分不能互相比较。",
    ),
    "practice": (
        "Practice: times are a host clock's, not official.",
        "练习：时间取自主机时钟，不是正式成绩。",
    ),
    "shared": (
        "Scores that differ by no more than the measured spread share a rank.",
        "得分之差不超过实测波动的，名次并列。",
    ),
    "rounded": (
        "Scores of cases are rounded here; a case's own page has them in full.",
        "这里的用例得分已取整，完整数值见该用例的页面。",
    ),
    "hidden_note": (
        "Hidden cases are numbered: their verdict and score are all that is shown.",
        "隐藏用例只有编号，只公布判定和得分。",
    ),
    "nothing": ("Nothing is graded yet.", "还没有评测结果。"),
    "conditions": ("Conditions", "评测条件"),
    "device": ("device", "设备"),
    "protocol": ("protocol", "协议"),
    "baseline": ("baseline", "基线"),
    "judge": ("judge", "评测程序"),
    "versions": ("versions", "版本"),
    "suites": ("suites", "用例集"),
    "gate": ("gate", "正确性门槛"),
    "rank": ("Rank", "名次"),
    "name": ("Name", "姓名"),
    "id": ("ID", "学号"),
    "group": ("Group", "组"),
    "total": ("Total", "总分"),
    "untimed": ("{suite}, passed", "{suite} 通过"),
    "rules": ("Rules", "规则"),
    "tries": ("Tries", "次数"),
    "graded": ("Graded (UTC)", "评测时间（UTC）"),
    "submitted": ("Submitted (UTC)", "提交时间（UTC）"),
    "remark": ("Remark", "备注"),
    "sort": ("Sort by", "排序："),
    "table_board": ("Everybody's rank and scores", "所有人的名次和得分"),
    "scrolls": ("table, scrolls sideways", "表格，可左右滚动"),
    "place": ("{rank} of {total}", "第 {rank} 名，共 {total} 人"),
    "no_rank": ("no rank", "无名次"),
    "attempt": ("Attempt", "尝试"),
    "result": ("Result", "结果"),
    "decision": ("Decision by an assistant", "助教的决定"),
    "cases": ("Cases", "用例"),
    "case": ("Case", "用例"),
    "suite": ("Suite", "用例集"),
    "verdict": ("Verdict", "判定"),
    "score": ("Score", "得分"),
    "median": ("Median, ms", "中位数，ms"),
    "p10p90": ("p10 to p90, ms", "p10 到 p90，ms"),
    "gpu_ms": ("GPU alone, ms", "仅 GPU，ms"),
    "speed_up": ("t100 / median", "t100 / 中位数"),
    "detail": ("Detail", "说明"),
    "timed_cases": ("Timed cases", "计时用例"),
    "untimed_cases": ("Untimed cases", "不计时用例"),
    "passed": ("{passed} of {ran} passed", "{ran} 个中通过 {passed} 个"),
    "all_cases": ("All {n} cases", "全部 {n} 个用例"),
    "times": ("Times", "时间"),
    "times_text": (
        "Above: the timed calls, faster to the left; the line is the median, the band p10 to p90. "
        "Below: the median among the times to compare it with, on a logarithmic scale. All in ms.",
        "上图：各次计时调用，越靠左越快；竖线是中位数，色带是 p10 到 p90。"
        "下图：中位数与各参照时间的位置，对数刻度。单位均为 ms。",
    ),
    "floor": ("floor", "下限"),
    "floor_text": (
        "The floor is the least that a call can take on this device.",
        "下限是该设备上一次调用所需的最短时间。",
    ),
    "samples_label": (
        "{case}: {n} timed calls from {low} to {high} ms, median {median} ms",
        "{case}：{n} 次计时调用，{low} 到 {high} ms，中位数 {median} ms",
    ),
    "place_label": (
        "{case}: median {median} ms; {marks}",
        "{case}：中位数 {median} ms；{marks}",
    ),
    "noisy": ("noisy", "有干扰"),
    "history": ("History", "历次尝试"),
    "history_label": (
        "Scores of {n} tries in their order: {values}",
        "依次 {n} 次尝试的得分：{values}",
    ),
    "counts": ("counts", "计入"),
    "kernels": ("Kernels", "算子资源"),
    "kernels_text": (
        "As compiled for {profile} on {when}, before any run.",
        "{when} 针对 {profile} 编译所得，未运行。",
    ),
    "kernel": ("Kernel", "算子"),
    "threads": ("Threads", "线程"),
    "registers": ("Registers", "寄存器"),
    "spills": ("Spilled bytes", "溢出字节"),
    "shared_memory": ("Shared memory, bytes", "共享内存，字节"),
    "ctas": ("CTAs an SM", "每 SM 的 CTA"),
    "bound_by": ("bound by", "受限于"),
    "units": ("Uses", "使用"),
    "log": ("Log", "日志"),
    "log_text": (
        "What the submission printed, the first lines of each case that is not hidden.",
        "提交的输出，每个非隐藏用例的前几行。",
    ),
    "cut": ("more lines are left out", "其余略去"),
    "notes": ("Notes", "注意"),
    "case_title": ("Case {case}", "用例 {case}"),
    "shape": ("Shape", "形状"),
    "gate_kind": ("Gate", "门控"),
    "state": ("Initial state", "初始状态"),
    "yes": ("yes", "有"),
    "no": ("no", "无"),
    "who": ("Who stands how", "各人成绩"),
    "failed_here": ("Who did not pass", "未通过者"),
    "medians_label": (
        "Medians of {n} participants from {low} to {high} ms; {marks}",
        "{n} 人的中位数，{low} 到 {high} ms；{marks}",
    ),
    "everybody": ("All medians", "所有人的中位数"),
    "verdict_words": ("What the verdicts mean", "判定的含义"),
    "PASS": ("right at every call that was looked at", "每次被检查的调用都正确"),
    "WRONG": ("out of tolerance, or an input was changed", "超出容差，或改动了输入"),
    "BAD_RESULT": ("no result that could be compared", "没有可供比对的结果"),
    "CHEAT": ("claims that the judge's clock contradicts", "自报时间与评测程序的时钟矛盾"),
    "CRASH": ("an exception, a signal or a limit", "异常、信号或超限"),
    "TIMEOUT": ("no answer in time", "超时未答"),
    "IMPORT_ERROR": ("does not import", "无法导入"),
    "COMPILE_ERROR": ("does not compile", "无法编译"),
    "NOT_RUN": ("was not run", "没有运行"),
    "private_title": ("Your results", "你的成绩"),
    "private_text": (
        "This page is for you alone.",
        "本页仅供你本人查看。",
    ),
    "choose": ("Choose a language", "选择语言"),
}


class Words:
    """The words of one language: `words("rank")`, with `{name}` filled in by keyword."""

    def __init__(self, language: str) -> None:
        column = list(LANGUAGES).index(language)
        self.language = language
        self._words = {key: Markup(forms[column]) for key, forms in _WORDS.items()}

    def __call__(self, key: str, **values: object) -> Markup:
        """The text, with what is filled in escaped; KeyError where there is none."""
        text = self._words[key]
        if not values:
            return text
        return Markup(str(text).format(**{name: escape(value) for name, value in values.items()}))

    def known(self, key: str) -> str:
        """The text, or `key` itself where there is none."""
        return self._words.get(key, key)
