"""The errors that a workbook can have, without openpyxl, which takes 12 MB in every process that loads it."""


class PartTooLargeError(Exception):
    """A part of the workbook is larger than anything that Excel writes there."""


class NoTableError(Exception):
    """The workbook has no sheet with rows, only charts."""
